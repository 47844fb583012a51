"""The other sites' public keys as this site's people know them: compared by a second way, not taken from anybody."""

from pathlib import Path

from silograph._util.documents import parse_json
from silograph._util.files import write_json

PINS = "pins.json"


class Pins:
    """The fingerprints that were pinned in a site's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PINS

    def all(self) -> dict[str, str]:
        """Every site's fingerprint."""
        return {site: entry["key"] for site, entry in self._read().items()}

    def get(self, site: str) -> str | None:
        """A site's fingerprint; None where nobody pinned one."""
        return self.all().get(site)

    def set(self, site: str, fingerprint: str, *, by: str) -> None:
        """Pin a site's key."""
        write_json(self._path, self._read() | {site: {"key": fingerprint, "by": by}})

    def _read(self) -> dict[str, dict[str, str]]:
        return parse_json(self._path.read_bytes()) if self._path.exists() else {}
