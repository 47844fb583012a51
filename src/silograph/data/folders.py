"""Tables by the places they lie in: a file is a silo, a folder is a site whose files are silos."""

from collections.abc import Sequence
from dataclasses import dataclass
from glob import has_magic
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


def is_one_file(place: Path) -> bool:
    """Whether a place is a table by itself, rather than a folder or a pattern of several."""
    return place.is_file() or not (place.is_dir() or has_magic(str(place)))


def find_tables(places: Sequence[Path]) -> list[FoundTable]:
    """The tables of files, folders and patterns, in the order of places and, within one, of names."""
    found: list[FoundTable] = []
    for place in places:
        if is_one_file(place):
            found.append(FoundTable(path=place, name=place.stem))
            continue
        root = Path(place.anchor)  # of a pattern; of one that is no whole path, it is here
        paths = place.iterdir() if place.is_dir() else root.glob(str(place.relative_to(root)))
        inside = sorted(path for path in paths if path.suffix.lower() in SUFFIXES and not path.name.startswith("."))
        if not inside:
            raise SignalError(f"{place}: expected a folder of tables ({', '.join(SUFFIXES)}), got none in it.")
        site = place.resolve().name if place.is_dir() else None
        found += [FoundTable(path=path, name=path.stem, site=site) for path in inside]
    return found
