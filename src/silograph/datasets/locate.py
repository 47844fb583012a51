"""Where a published data set lies: the path given, or a known name in the folder `$SILOGRAPH_DATA`.

Nothing is downloaded, since each data set has terms that its user has to read.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from silograph.errors import DataError

VARIABLE = "SILOGRAPH_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A published data set: the names of its files, who publishes it and under which terms."""

    title: str
    names: tuple[str, ...]  # of files or folders, the preferred one first
    source: str
    terms: str


COIL20 = Origin(
    title="COIL-20",
    names=("coil20.npz", "COIL20.mat", "coil-20-proc"),
    source="Columbia University, CAVE (https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php, 'processed')",
    terms="for research use",
)
ABIDE = Origin(
    title="ABIDE",
    names=("nyu_ho_176x111.npz", "abide.npz", "ABIDE_pcp"),
    source="the Preprocessed Connectomes Project (http://preprocessed-connectomes-project.org/abide/) "
    "or nilearn.datasets.fetch_abide_pcp",
    terms="for non-commercial research, after agreeing to the terms of ABIDE",
)
MOLENE = Origin(
    title="Molène",
    names=("molene_temp.npz",),
    source="Météo-France, open data (https://donneespubliques.meteofrance.fr), hourly observations of January 2014, "
    "saved as an .npz file with the arrays T (variables, stations, hours) and coords (stations, 2)",
    terms="Licence Ouverte",
)


def fingerprint(place: Path) -> str:
    """A name for what is there: the content of a file, or of all files in a folder, with their names."""
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        if file.is_file():
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def locate(origin: Origin, path: str | Path | None = None) -> Path:
    """The file or folder of a data set; a folder that holds a known name stands for that one."""
    if path is not None:
        given = Path(path)
        if not given.exists():
            raise DataError(f"{origin.title}: expected a file or folder, but {given} does not exist.\n{_help(origin)}")
        return _known_inside(origin, given) or given
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise DataError(f"{origin.title}: no path was given and {VARIABLE} is not set.\n{_help(origin)}")
    found = _known_inside(origin, Path(folder))
    if found is None:
        raise DataError(
            f"{origin.title}: expected {_names(origin)} in {folder} ({VARIABLE}), got none.\n{_help(origin)}"
        )
    return found


def _known_inside(origin: Origin, folder: Path) -> Path | None:
    return next((folder / name for name in origin.names if (folder / name).exists()), None)


def _names(origin: Origin) -> str:
    return " or ".join(repr(name) for name in origin.names)


def _help(origin: Origin) -> str:
    return (
        f"Get it from {origin.source}; terms: {origin.terms}. "
        f"Then pass its path, or keep it as {_names(origin)} in a folder and set {VARIABLE} to that folder."
    )
