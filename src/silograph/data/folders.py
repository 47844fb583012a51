"""Tables by the places they lie in: a file is a silo, a folder is a site whose files are silos."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from silograph.data.readers.table import SUFFIXES
from silograph.errors import SignalError


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table on disk, and what its silo is called."""

    path: Path
    name: str  # of the silo within its site: the file's without suffixes
    site: str | None = None  # the folder's name; None: a file that was named by itself

    @property
    def silo(self) -> str:
        """The silo's whole name."""
        return self.name if self.site is None else f"{self.site}/{self.name}"


def find_tables(places: Sequence[Path]) -> list[FoundTable]:
    """The tables of files and folders, in the order of places and, within a folder, of names."""
    found: list[FoundTable] = []
    for place in places:
        if not place.is_dir():
            found.append(FoundTable(path=place, name=place.stem))
            continue
        inside = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES)
        if not inside:
            raise SignalError(f"{place}: expected a folder of tables ({', '.join(SUFFIXES)}), got none in it.")
        site = place.resolve().name
        found += [FoundTable(path=path, name=path.stem, site=site) for path in inside]
    return found
