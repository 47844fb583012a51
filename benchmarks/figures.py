"""The figures of docs/benchmarks.md: how costs grow, who needs how long, and ratios with their spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.fits import Curve, Spread, spread
from benchmarks.growth import WORDS, Growth
from benchmarks.report import columns, exponent, laps_of, ratio_of
from benchmarks.suite import OURS, Competitor, Record

COLOURS = ("#1d5fa8", "#e4572e", "#2a9d5c", "#b5179e", "#e9a820", "#4b4b4b", "#7fb2e5", "#8c5a2b", "#6ccfa0", "#c9a0dc")
OURS_COLOUR = "#000000"


@contextmanager
def drawing(path: Path, n_panels: int, *, height: float = 3.6) -> Iterator[list[Any]]:
    """Panels side by side, saved as an SVG file when the block ends; the same data give the same bytes."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "silograph"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, n_panels, figsize=(4.2 * n_panels, height), layout="constrained", squeeze=False)
    try:
        yield list(panels[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    finally:
        plt.close(figure)


def draw_growth(growth: Growth, path: Path) -> None:
    """Times over sizes, one panel per axis, one line per stage; dashed: the fitted laws."""
    axes = growth.measured()
    with drawing(path, len(axes)) as panels:
        for panel, axis in zip(panels, axes, strict=True):
            for stage, colour in zip(growth.stages, COLOURS, strict=False):
                _add_curve(panel, growth.seconds(axis, stage), WORDS[stage], colour)
            _finish(panel, growth, axis, "processor seconds")


def draw_rounds(growth: Growth, path: Path) -> None:
    """Rounds over sizes, one panel per axis."""
    axes = growth.measured()
    with drawing(path, len(axes), height=3.0) as panels:
        for panel, axis in zip(panels, axes, strict=True):
            _add_curve(panel, growth.rounds(axis), "rounds to a gap of 1e-6", COLOURS[0])
            _finish(panel, growth, axis, "rounds")
            panel.set_ylim(1, 100)


def draw_solvers(records: Sequence[Record], competitors: Sequence[Competitor], target: str, path: Path) -> None:
    """Times to a target over nodes, one panel per kind of signals, one line per solver.

    Kinds with two sizes or less are in the tables alone.
    """
    every = [(one["case"]["dataset"], one["case"]["degree"]) for one in records]
    kinds = [kind for kind in dict.fromkeys(every) if every.count(kind) > 2]
    with drawing(path, len(kinds), height=4.2) as panels:
        for panel, kind in zip(panels, kinds, strict=True):
            here = [one for one in records if (one["case"]["dataset"], one["case"]["degree"]) == kind]
            for competitor, colour in zip(columns(records, competitors), (OURS_COLOUR, *COLOURS), strict=True):
                timed = [(one["case"]["n_nodes"], laps_of(one, competitor.name, target)) for one in here]
                points = sorted(((size, spread(laps)) for size, laps in timed if laps), key=lambda point: point[0])
                if points:
                    sizes, spreads = zip(*points, strict=True)
                    _add_bars(
                        panel, sizes, spreads, "-", competitor.name, colour, 2.5 if competitor.name == OURS else 1
                    )
            panel.set(xscale="log", yscale="log", xlabel="d", title=f"{kind[0]}, degree {kind[1]}")
            panel.minorticks_off()
            panel.grid(alpha=0.3)
        panels[0].set_ylabel(f"processor seconds to a gap of {target}")
        panels[0].legend(fontsize=7)


def draw_ratios(records: Sequence[Record], competitors: Sequence[Competitor], target: str, path: Path) -> None:
    """Each solver's time over silograph's, one mark per instance; bars from the least lap to the most."""
    names = [one for one in competitors if any(ratio_of(record, one, target) for record in records)]
    with drawing(path, 1, height=1.2 + 0.5 * len(names)) as (panel,):
        panel.figure.set_figwidth(8)
        for row, competitor in enumerate(names):
            ratios = sorted((one for record in records if (one := ratio_of(record, competitor, target))), key=_median)
            for k, ratio in enumerate(ratios):
                height = -row + 0.6 * (k / max(len(ratios) - 1, 1) - 0.5)
                reach = [[ratio.median - ratio.least], [ratio.most - ratio.median]]
                panel.errorbar(ratio.median, height, xerr=reach, fmt="o", ms=3, lw=1, color=COLOURS[row])
        panel.axvline(1, color=OURS_COLOUR, lw=1)
        panel.set_yticks([-row for row in range(len(names))], [one.name for one in names])
        panel.set(xscale="log", xlabel=f"time to an error of {target} over {OURS}'s; right of 1: {OURS} is faster")
        panel.grid(alpha=0.3, axis="x")


def _add_curve(panel: Any, curve: Curve, name: str, colour: str) -> None:
    label = name if curve.law is None else f"{name}: {exponent(curve.law)}"
    _add_bars(panel, curve.sizes, curve.spreads, "", label, colour)
    if curve.law is not None:
        ends = [curve.law.sizes[0], curve.law.sizes[-1]]
        panel.plot(ends, [curve.law.at(size) for size in ends], "--", color=colour, lw=1)


def _add_bars(
    panel: Any, sizes: Sequence[float], spreads: Sequence[Spread], line: str, label: str, colour: str, width: float = 1
) -> None:
    middle = [one.median for one in spreads]
    reach = [[one.median - one.least for one in spreads], [one.most - one.median for one in spreads]]
    panel.errorbar(sizes, middle, yerr=reach, fmt=f"o{line}", ms=3, lw=width, color=colour, label=label)


def _finish(panel: Any, growth: Growth, axis: str, what: str) -> None:
    panel.set(xscale="log", yscale="log", xlabel=growth.axes[axis], ylabel=what, title=growth.fixed(axis))
    panel.minorticks_off()
    panel.grid(alpha=0.3)
    low, high = panel.get_ylim()
    panel.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
    panel.legend(fontsize=7, loc="upper left", title="exponent (95 % interval)", title_fontsize=7)


def _median(ratio: Spread) -> float:
    return ratio.median
