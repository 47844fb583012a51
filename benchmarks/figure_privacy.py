"""The figure of docs/privacy.md: accuracy against ε, by sites and rows.

python -m benchmarks.figure_privacy        # from benchmarks/results/privacy.json to docs/images/privacy.svg
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np

ROOT = Path(__file__).parents[1]
DATA, IMAGE = ROOT / "benchmarks" / "results" / "privacy.json", ROOT / "docs" / "images" / "privacy.svg"
COLOURS = ("#b5179e", "#e4572e", "#e9a820", "#2a9d5c", "#1d5fa8")  # by rising numbers of rows


def draw(curve: list[dict], path: Path) -> Path:
    """One panel per number of sites: the consensus as lines, personal graphs dotted, no noise at the right edge."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "silograph"  # the same data give the same bytes
    from matplotlib import pyplot as plt

    sites, samples = (sorted({row[name] for row in curve}) for name in ("sites", "samples"))
    epsilons = sorted({row["epsilon"] for row in curve if row["epsilon"] is not None})
    figure, panels = plt.subplots(1, len(sites), figsize=(11, 3.4), sharey=True, layout="constrained")
    for panel, n_sites in zip(panels, sites, strict=True):
        for n_samples, colour in zip(samples, COLOURS, strict=True):
            for what, style in (("consensus", "-"), ("personal", ":")):
                here = [row for row in curve if (row["sites"], row["samples"]) == (n_sites, n_samples)]
                means = [_mean(here, what, epsilon) for epsilon in epsilons]
                label = f"{n_samples} rows per site" if what == "consensus" else None
                panel.plot(
                    epsilons, means, style, color=colour, label=label, marker="o" if style == "-" else None, ms=3
                )
                at_edge = (1.5 * epsilons[-1], _mean(here, what, None))
                panel.plot(*at_edge, marker="_" if style == "-" else ".", color=colour, ms=8 if style == "-" else 3)
        ticks = [*epsilons, 1.5 * epsilons[-1]]
        panel.set(xscale="log", title=f"{n_sites} sites", xlabel="ε", ylim=(0.2, 1.01))
        panel.set_xticks(ticks, [*(f"{one:g}" for one in epsilons), "∞"])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("average precision")
    panels[-1].legend(
        fontsize=8, loc="lower right", title="solid: consensus\ndotted: personal graphs", title_fontsize=8
    )
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def _mean(rows: list[dict], what: str, epsilon: float | None) -> float:
    return float(np.mean([row[what] for row in rows if row["epsilon"] == epsilon]))


if __name__ == "__main__":
    print(draw(json.loads(DATA.read_text(encoding="utf-8"))["curve"], IMAGE))
