"""Where the regions of the Harvard-Oxford atlas lie.

`harvard_oxford.csv` has one row per code of the Preprocessed Connectomes Project's `rois_ho` series: the 48 cortical
labels k of the atlas as 100k + 1 (right) and 100k + 2 (left), and FreeSurfer's codes for what is below the cortex.
Centres are in MNI space, in whole millimetres, after the list of the atlas' regions that comes with BrainNet Viewer
(Xia, Wang & He 2013). Code 3455, two overlapping regions, has none.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from silograph._util.types import Matrix


def region_centres(codes: Sequence[str]) -> Matrix | None:
    """x, y, z of each region (regions, 3) by its code; None where any of them is not known."""
    known = _known_centres()
    if not all(code in known for code in codes):
        return None
    return np.array([known[code] for code in codes])


@cache
def _known_centres() -> dict[str, tuple[float, ...]]:
    text = files("silograph.datasets").joinpath("harvard_oxford.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row["code"]: tuple(float(row[axis]) for axis in "xyz") for row in rows}
