"""Experiments small enough for tests: few draws, grids of two values, stand-ins in the formats of published data."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.recipe import Grids, Recipe
from silograph.experiments.session import QUICK

VALUES = {
    "betas": (0.35, 0.7), "own_betas": (0.35, 0.7), "strengths": (0.3, 3.0),
    "nus": (2.0, 20.0), "equal_nus": (20.0, 200.0), "lams": (0.05, 0.5), "sparsities": (0.0, 0.2),
}  # fmt: skip
GRIDS = Grids(**{field.name: VALUES[field.name] for field in fields(Grids)})  # two values of all that is searched
RECIPE = Recipe(grids=GRIDS)
SCALE = replace(
    QUICK,
    seeds=2,
    draws=2,
    subjects=None,
    subset=4,
    subsets=2,
    permutations=200,
    recipe=RECIPE,
    image_grids=replace(GRIDS, betas=(0.1, 0.5), own_betas=(0.1, 0.5), lams=(0.05,), strengths=(0.3,)),
    edge_permutations=200,
)
KNOWN_REGIONS = ("10", "49", "11", "50", "12", "51", "101", "102", "201", "202", "301", "302")  # of Harvard-Oxford
UNKNOWN_REGIONS = tuple(f"area{k}" for k in range(12))


def write_coil(path: Path) -> Path:
    """Twenty things that turn: each has an image of its own, which changes smoothly with the pose."""
    rng = np.random.default_rng(20)
    angle = 2 * np.pi * np.arange(72) / 72
    turning = np.stack([np.ones(72), np.cos(angle), np.sin(angle)], axis=1)
    own = rng.random((20, 3, 1024)) * np.array([1.0, 0.25, 0.25])[:, None]
    images = np.einsum("pk,okx->opx", turning, own)
    np.savez(path, X_f32=((images - images.min()) / np.ptp(images)).astype(np.float32))
    return path


def write_abide(path: Path, regions: tuple[str, ...], *, n_autism: int = 7, n_control: int = 9) -> Path:
    """Series of two groups of subjects; neighbouring regions are alike, with subject's differences."""
    rng = np.random.default_rng(37)
    n_subjects, n_regions = n_autism + n_control, len(regions)
    common = np.eye(n_regions) + 0.8 * np.eye(n_regions, k=1)
    mixing = common + 0.2 * rng.normal(size=(n_subjects, n_regions, n_regions))
    values = rng.normal(size=(n_subjects, 60, n_regions)) @ mixing
    groups = rng.permutation([1] * n_autism + [2] * n_control)
    np.savez(path, X=values, dx=groups, sub_id=50_000 + np.arange(n_subjects), roi=np.array(regions))
    return path


def without_seconds(arrays: Arrays) -> Arrays:
    """All but what a second run changes."""
    return {name: values for name, values in arrays.items() if not name.endswith(SECONDS)}


def assert_same(first: Arrays, second: Arrays) -> None:
    """The same arrays to the last bit, but for the time they took."""
    first, second = without_seconds(first), without_seconds(second)
    assert list(first) == list(second)
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name, strict=True)


def promised(name: str) -> list[str]:
    """The files that every table, figure and page of the catalogue comes as."""
    if name.startswith("figure-"):
        return [f"{name}{suffix}" for suffix in (".md", ".svg", ".png")]
    if name.startswith("table"):
        extra = ["table5-sensitivity"] if name == "table5" else []
        return [f"{table}{suffix}" for table in (name, *extra) for suffix in (".md", ".csv", ".json")]
    return ["findings.md", "deviations.md", "deviations.csv", "deviations.json"]
