"""The formats of ABIDE: an .npz file, the folder of the Preprocessed Connectomes Project, what nilearn returns."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from silograph._util.types import Matrix
from silograph.data.readers import open_signals
from silograph.datasets.archives import ANEW, numbers, read_npz
from silograph.errors import DataError, SignalError
from silograph.graph.pairs import default_names

Group = Literal["autism", "control"]
GROUPS: dict[str, Group] = {"1": "autism", "2": "control"}  # DX_GROUP
TABLE = "Phenotypic_V1_0b_preprocessed1.csv"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recordings:
    """What a format holds, before anything is left out."""

    source: str  # what errors call it
    series: dict[str, Matrix]  # subject -> (frames, regions)
    groups: dict[str, Group]
    regions: tuple[str, ...]


def from_npz(path: Path) -> Recordings:
    """X (subjects, frames, regions), dx, sub_id and roi."""
    arrays = read_npz(path, ("X", "dx", "sub_id", "roi"))
    values = numbers(arrays["X"], (None, None, None), what=f"{path}, X")
    for name, length in (("dx", values.shape[0]), ("sub_id", values.shape[0]), ("roi", values.shape[2])):
        if arrays[name].shape != (length,):
            raise DataError(f"{path}, {name}: expected {length} values, got shape {arrays[name].shape}. {ANEW}")
    subjects, regions = map(str, arrays["sub_id"].tolist()), tuple(map(str, arrays["roi"].tolist()))
    return _recordings(str(path), list(subjects), list(values), arrays["dx"].tolist(), regions)


def from_folder(folder: Path, *, atlas: str, phenotypes: Path | None) -> Recordings:
    """Files `{FILE_ID}_rois_{atlas}.1D`, each of a subject whose FILE_ID the table knows."""
    ending = f"_rois_{atlas}.1D"
    files = sorted(folder.rglob(f"*{ending}"))
    if not files:
        raise DataError(f"{folder}: expected files *{ending}, got none. Check the folder, or pass another atlas.")
    table_path = _table_path(folder) if phenotypes is None else phenotypes
    table = _table(table_path)
    subjects: list[str] = []
    series: list[Matrix] = []
    groups: list[str] = []
    regions: tuple[str, ...] = ()
    for file in files:
        row = table.get(file.name.removesuffix(ending))
        if row is None:
            raise DataError(
                f"{file}: expected a row with FILE_ID {file.name.removesuffix(ending)!r} in {table_path}, got none. "
                "Remove the file, or pass the table it belongs to as phenotypes."
            )
        values, names = _one_file(file)
        if series and names != regions:
            raise DataError(f"{file}: expected the {len(regions)} regions of {files[0].name}, got others. {ANEW}")
        regions = names
        subjects.append(row["SUB_ID"].strip())
        groups.append(row["DX_GROUP"].strip())
        series.append(values)
    return _recordings(str(folder), subjects, series, groups, regions)


def from_nilearn(bunch: Any, *, atlas: str | None, names: Sequence[str] | None) -> Recordings:
    """`rois_{atlas}`, one array per subject, and `phenotypic`, one row per subject in the same order."""
    atlases = [key.removeprefix("rois_") for key in bunch if key.startswith("rois_")]
    chosen = atlases[0] if atlas is None and len(atlases) == 1 else atlas
    if chosen not in atlases:
        raise DataError(
            f"nilearn: expected {f'rois_{chosen}' if chosen else 'one atlas'}, "
            f"got {', '.join(f'rois_{one}' for one in atlases) or 'none'}. "
            "Fetch with derivatives=['rois_ho'], and name the atlas if there are several."
        )
    arrays, table = bunch[f"rois_{chosen}"], bunch["phenotypic"]
    subjects, groups = [str(one) for one in table["SUB_ID"]], [str(one) for one in table["DX_GROUP"]]
    if not len(arrays) == len(subjects) > 0:
        raise DataError(f"nilearn: expected one array per row of phenotypic ({len(subjects)}), got {len(arrays)}.")
    width = np.shape(arrays[0])[-1]
    series = [
        numbers(np.asarray(values), (None, width), what=f"nilearn, rois_{chosen}, subject {subject}")
        for subject, values in zip(subjects, arrays, strict=True)
    ]
    regions = default_names(width) if names is None else tuple(map(str, names))
    if len(regions) != width:
        raise DataError(f"names: expected {width}, one per region of rois_{chosen}, got {len(regions)}.")
    return _recordings("nilearn", subjects, series, groups, regions)


def _recordings(
    source: str, subjects: list[str], series: list[Matrix], groups: Sequence[object], regions: tuple[str, ...]
) -> Recordings:
    for what, names in (("subjects", subjects), ("regions", regions)):
        if len(set(names)) != len(names):
            double = next(name for name in names if list(names).count(name) > 1)
            raise DataError(
                f"{source}: expected different {what}, got {double!r} twice. "
                "If a folder holds several pipelines, pass the folder of one."
            )
    for subject, group in zip(subjects, groups, strict=True):
        if str(group) not in GROUPS:
            raise DataError(f"{source}, subject {subject}: expected DX_GROUP 1 (autism) or 2 (control), got {group!r}.")
    return Recordings(
        source=source,
        series=dict(zip(subjects, series, strict=True)),
        groups={subject: GROUPS[str(group)] for subject, group in zip(subjects, groups, strict=True)},
        regions=regions,
    )


def _one_file(file: Path) -> tuple[Matrix, tuple[str, ...]]:
    try:
        signals = open_signals(file)
        return np.vstack(list(signals.chunks())), signals.names
    except SignalError as error:
        raise DataError(f"{file.parent}: {error}") from error


def _table_path(folder: Path) -> Path:
    # nilearn keeps the series two folders below the table: ABIDE_pcp/cpac/filt_noglobal
    places = [folder, *folder.resolve().parents[:2]]
    found = next((place / TABLE for place in places if (place / TABLE).is_file()), None)
    if found is None:
        raise DataError(
            f"{folder}: expected {TABLE} in it or just above, got none. Fetch it, or pass it as phenotypes."
        )
    return found


def _table(path: Path) -> dict[str, dict[str, str]]:
    """FILE_ID -> the subject's row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: expected a table of subjects, but reading it failed ({error}). {ANEW}") from error
    needed = ("SUB_ID", "FILE_ID", "DX_GROUP")
    if not rows or any(row.get(column) is None for row in rows for column in needed):
        raise DataError(f"{path}: expected rows with the columns {', '.join(needed)}, got others. {ANEW}")
    return {row["FILE_ID"].strip(): row for row in rows}
