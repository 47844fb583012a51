"""Tables by the places they lie in: a file is a silo, a folder is a site whose files are silos."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path

from silograph.data.readers.table import SUFFIXES, SUFFIXES_SHOWN, suffix_of
from silograph.errors import SignalError, SilosError

RECORD = "run.json"  # in the folder of a run, whose tables are results
TIME_SERIES = re.compile(r"^sub-.*_timeseries$")
# What a BIDS folder holds beside signals of nodes
BESIDE = re.compile(r"^(participants|samples)$|_(events|scans|sessions|channels|electrodes|physio)$|desc-confounds")
SUBJECT = re.compile(r"(?:^|_)((?:sub|ses|run)-[A-Za-z0-9]+)")  # BIDS: what tells recordings apart
SITE = re.compile(r"_site-(?P<site>[A-Za-z0-9]+)(?:_|$)")  # as some call recordings of several sites
PCP = re.compile(r"^(?P<site>.+)_(?P<subject>\d{7})_rois_.+$")  # the Preprocessed Connectomes Project


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table on disk, and what its silo is called."""

    path: Path
    name: str  # of the silo within its site
    site: str | None = None  # None: a file that was named by itself

    @property
    def silo(self) -> str:
        """The silo's whole name."""
        return self.name if self.site is None else f"{self.site}/{self.name}"


def is_one_file(place: Path) -> bool:
    """Whether a place is a table by itself, rather than a folder or a pattern of several."""
    return place.is_file() or not (place.is_dir() or has_magic(str(place)))


def find_tables(places: Sequence[Path]) -> list[FoundTable]:
    """The tables of files, folders and patterns, in the order of places and, within a folder, of paths.

    A file's silo is called like the file. A folder is a site, and its silos are called SITE/NAME: by subject where
    files are called as in BIDS or by the Preprocessed Connectomes Project, else like the files.
    """
    places = [one for place in places for one in _expanded(place)]
    files = [place for place in places if not place.is_dir()]
    folders = [place for place in places if place.is_dir()]
    names = dict(zip(files, _distinct(files, stem_of), strict=True))
    sites = dict(zip(folders, _distinct(folders, lambda path: path.name), strict=True))
    found: list[FoundTable] = []
    for place in places:
        if place in sites:
            found += _inside(place, sites[place])
        else:
            found.append(FoundTable(path=place, name=names[place]))
    _check(found)
    return found


def stem_of(path: Path) -> str:
    """The file's name without the suffix that tells its format."""
    suffix = suffix_of(path)
    return path.name[: -len(suffix)] if suffix in SUFFIXES else path.stem


def _expanded(place: Path) -> list[Path]:
    """The files that a pattern stands for; any other place is itself."""
    if is_one_file(place) or place.is_dir():
        return [place]
    matches = [Path(match) for match in sorted(glob(str(place), recursive=True))]  # noqa: PTH207 - of any path
    if not matches:
        raise SignalError(f"{place}: no file or folder is called like this. Check the pattern.")
    return matches


def _distinct(paths: Sequence[Path], name_of: Callable[[Path], str]) -> list[str]:
    """A name for each path; where two agree, all have their folder's name before."""
    places = [_place(path) for path in paths]
    names = [name_of(place) for place in places]
    return names if len(set(names)) == len(names) else [f"{place.parent.name}_{name_of(place)}" for place in places]


def _place(path: Path) -> Path:
    """Where it lies; two names that link to the same file are two places, as a copy would be."""
    return Path(os.path.normpath(path.absolute()))


def _inside(folder: Path, site: str) -> list[FoundTable]:
    """The tables in a folder and the folders in it, each with a name of its own."""
    paths = _tables_below(folder)
    if not paths:
        raise SignalError(
            f"{folder}: expected a folder of tables ({SUFFIXES_SHOWN}), got none in it. Check the path. Hidden files, "
            "earlier runs, and beside BIDS names confounds, events and the like are passed over."
        )
    told = [PCP.match(stem_of(path)) or SITE.search(stem_of(path)) for path in paths]
    mixed = len({match["site"] for match in told if match}) > 1
    found = [
        FoundTable(path=path, name=stem_of(path), site=match["site"] if mixed and match else site)
        for path, match in zip(paths, told, strict=True)
    ]
    for n_parts in (1, 2, 3, None):
        named = [replace(one, name=_short(one.name, n_parts)) for one in found]
        if len({one.silo for one in named}) == len(named):
            return named
    return [replace(one, name="_".join([*one.path.relative_to(folder).parts[:-1], one.name])) for one in found]


def _tables_below(folder: Path) -> list[Path]:
    """Every table in a folder and the folders in it, but for what is hidden, what a run wrote, and what lies beside."""
    found = []
    for place, below, files in os.walk(folder, onerror=_refuse):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if RECORD in files:
            below.clear()
            continue
        paths = (Path(place, name) for name in files if not name.startswith("."))
        found += [path for path in paths if suffix_of(path) in SUFFIXES]
    stems = {path: stem_of(path) for path in sorted(found)}
    if any(stem.startswith("sub-") for stem in stems.values()):
        stems = {path: stem for path, stem in stems.items() if not BESIDE.search(stem)}
        series = [path for path, stem in stems.items() if TIME_SERIES.match(stem)]
        return series or list(stems)
    return list(stems)


def _refuse(error: OSError) -> None:
    raise SignalError(f"{error.filename}: the folder cannot be read ({error.strerror}). Check its permissions.")


def _short(stem: str, n_parts: int | None) -> str:
    """The subject, and of BIDS names so many of subject, session and run; None, or any other name: as it is."""
    if n_parts is not None and (match := PCP.match(stem)):
        return match["subject"]
    if n_parts is not None and stem.startswith("sub-"):
        return "_".join(SUBJECT.findall(stem)[:n_parts])
    return stem


def _check(found: Sequence[FoundTable]) -> None:
    """Raise unless each table is there once and each silo has a name of its own, that folders can have too."""
    silos: dict[str, Path] = {}
    places, sites = set[Path](), {one.site for one in found}
    for one in found:
        if _place(one.path) in places:
            raise SilosError(f"{one.path}: was given twice. Give each silo's table once.")
        if one.silo in silos:
            raise SilosError(
                f"Two tables would both be called {one.silo!r}: {silos[one.silo]} and {one.path}. Give each silo's "
                "file a name of its own."
            )
        places.add(_place(one.path))
        silos[one.silo] = one.path
        if one.site is None and one.name in sites:
            raise SilosError(f"{one.path}: a folder has the name {one.name!r}, too. Rename one of them.")
        if any(part in ("", ".", "..") or re.search(r"[/\\\0]", part) for part in (one.name, one.site or "site")):
            raise SilosError(f"{one.path}: expected a name that a folder can have, got {one.silo!r}. Rename it.")
