"""ABIDE: resting-state fMRI of autistic people and controls, averaged over the regions of an atlas.

A subject is a silo, a frame a sample, a region a node. What is read (`abide_files`) is brought here to the same regions
for all, and what had to be left out is named in the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.types import Matrix
from silograph.datasets.abide_files import Group, Recordings, from_folder, from_nilearn, from_npz
from silograph.datasets.locate import ABIDE, locate
from silograph.errors import DataError, ParameterError

Constant = Literal["drop", "error"]
Short = Literal["skip", "error"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Abide:
    """Subjects' series over the same regions."""

    series: dict[str, Matrix]  # subject -> (frames, regions)
    groups: dict[str, Group]  # subject -> 'autism' or 'control'
    regions: tuple[str, ...]
    dropped: dict[str, tuple[str, ...]]  # region left out -> subjects for whom it never changes
    skipped: dict[str, int]  # subject left out -> its frames, fewer than asked for


def load_abide(
    path: str | Path | None = None,
    *,
    atlas: str = "ho",
    phenotypes: str | Path | None = None,
    regions: Sequence[str | int] | None = None,
    frames: int | None = None,
    constant: Constant = "drop",
    short: Short = "skip",
) -> Abide:
    """Read ABIDE from an .npz file or a folder of .1D files (default: from the folder `$SILOGRAPH_DATA`).

    Parameters
    ----------
    path : str or Path, optional
        An .npz file with `X` (subjects, frames, regions), `dx` (1 = autism, 2 = control), `sub_id` and `roi`; or a
        folder of the Preprocessed Connectomes Project, whose `*_rois_{atlas}.1D` files may lie in folders below it.
    atlas : str
        Which files of a folder to read: 'ho', 'aal', 'cc200', ….
    phenotypes : str or Path, optional
        The table of subjects (default: `Phenotypic_V1_0b_preprocessed1.csv` in the folder or just above).
    regions : sequence of str or int, optional
        Which regions, by name or by number from 0, in this order (default: all).
    frames : int, optional
        Take the first so many frames of each subject (default: all there are).
    constant : 'drop' or 'error'
        What to do about regions that never change for some subject, as happens where the scan did not reach.
    short : 'skip' or 'error'
        What to do about subjects with fewer frames.
    """
    _check_options(frames, constant, short)
    place = locate(ABIDE, path)
    if place.is_dir():
        found = from_folder(place, atlas=atlas, phenotypes=None if phenotypes is None else Path(phenotypes))
    elif place.suffix.lower() == ".npz":
        found = from_npz(place)
    else:
        raise DataError(
            f"{place}: expected an .npz file or a folder of .1D files, got {place.suffix or 'no suffix'!r}."
        )
    return _align(found, regions, frames, constant, short)


def abide_from_nilearn(
    bunch: Any,
    *,
    atlas: str | None = None,
    names: Sequence[str] | None = None,
    regions: Sequence[str | int] | None = None,
    frames: int | None = None,
    constant: Constant = "drop",
    short: Short = "skip",
) -> Abide:
    """Take what `nilearn.datasets.fetch_abide_pcp(derivatives=["rois_ho"])` returns; options as in `load_abide`.

    nilearn does not say what the regions are called: without `names` they are 0, 1, 2, …. `atlas` is needed when
    several were fetched.
    """
    _check_options(frames, constant, short)
    return _align(from_nilearn(bunch, atlas=atlas, names=names), regions, frames, constant, short)


def _align(
    found: Recordings, regions: Sequence[str | int] | None, frames: int | None, constant: Constant, short: Short
) -> Abide:
    columns = _columns(found, regions)
    skipped = {subject: len(values) for subject, values in found.series.items() if len(values) < (frames or 1)}
    if skipped and (short == "error" or len(skipped) == len(found.series)):
        subject, length = next(iter(skipped.items()))
        raise DataError(
            f"{found.source}, subject {subject}: expected at least {frames} frames, got {length} "
            f"({len(skipped)} of {len(found.series)} subjects have fewer). Lower frames, or pass short='skip'."
        )
    series = {
        subject: np.ascontiguousarray(values[:frames, columns])
        for subject, values in found.series.items()
        if subject not in skipped
    }
    names = [found.regions[column] for column in columns]
    still = {subject: values.max(axis=0) == values.min(axis=0) for subject, values in series.items()}
    dropped = {
        name: tuple(subject for subject in series if still[subject][column])
        for column, name in enumerate(names)
        if any(flat[column] for flat in still.values())
    }
    if dropped and (constant == "error" or len(dropped) == len(names)):
        name, subjects = next(iter(dropped.items()))
        raise DataError(
            f"{found.source}, region {name!r}: expected values that change, got a constant for subject {subjects[0]} "
            f"({len(dropped)} of {len(names)} regions have such subjects). Leave it out, or pass constant='drop'."
        )
    keep = [column for column, name in enumerate(names) if name not in dropped]
    return Abide(
        series={subject: np.ascontiguousarray(values[:, keep]) for subject, values in series.items()},
        groups={subject: found.groups[subject] for subject in series},
        regions=tuple(names[column] for column in keep),
        dropped=dropped,
        skipped=skipped,
    )


def _columns(found: Recordings, regions: Sequence[str | int] | None) -> list[int]:
    number = {name: column for column, name in enumerate(found.regions)}
    if regions is None:
        return list(range(len(number)))
    columns = [number.get(region, -1) if isinstance(region, str) else region for region in regions]
    for region, column in zip(regions, columns, strict=True):
        if not (isinstance(column, int | np.integer) and 0 <= column < len(number)):
            raise ParameterError(
                f"regions: expected a name as {found.regions[0]!r} or a number from 0 to {len(number) - 1}, "
                f"got {region!r}."
            )
    if not columns or len(set(columns)) != len(columns):
        raise ParameterError("regions: expected different regions. Name each one once.")
    return columns


def _check_options(frames: int | None, constant: str, short: str) -> None:
    if frames is not None:
        check_whole("frames", frames, least=2)
    if constant not in ("drop", "error"):
        raise ParameterError(f"constant: expected 'drop' or 'error', got {constant!r}.")
    if short not in ("skip", "error"):
        raise ParameterError(f"short: expected 'skip' or 'error', got {short!r}.")
