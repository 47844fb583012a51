"""Updates that were not believed: kept aside with the reason, never added."""

from pathlib import Path

from silograph._util.files import make_folder, write_bytes

LARGEST_KEPT = 100_000  # bytes of one message that are kept; enough to see what it was
MOST_KEPT = 200  # messages that are kept; later ones are counted in the history alone


class Quarantine:
    """A folder of messages that were rejected."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, site: str, data: bytes) -> str | None:
        """Keep the message's first bytes; its file's name, or nothing if there are too many already."""
        make_folder(self._folder)
        number = sum(1 for _ in self._folder.glob("*.message")) + 1
        if number > MOST_KEPT:
            return None
        path = self._folder / f"{number:04d}-{site}.message"
        write_bytes(path, data[:LARGEST_KEPT])
        return path.name
