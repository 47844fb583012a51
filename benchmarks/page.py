"""The page docs/benchmarks.md and its figures, from the saved measurements of all suites alone.

python -m benchmarks.page        # from benchmarks/results/*.json to docs/benchmarks.md and docs/images/bench-*.svg
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.figures import draw_growth, draw_ratios, draw_rounds, draw_solvers
from benchmarks.growth import WORDS, Growth
from benchmarks.joint import report as joint
from benchmarks.joint.claims import PEERS, TARGET
from benchmarks.one_silo import report as one_silo
from benchmarks.one_silo.catalogue import EVERYBODY
from benchmarks.processes import ROOT
from benchmarks.report import Page, durations
from benchmarks.saved import page_of
from benchmarks.suite import NAMES, Record
from silograph._util.files import write_text

DOCS = ROOT / "docs"
INTRODUCTION = (
    "Made by `make bench`, from what it measured and nothing else. All tables, instance by instance, are in "
    "`benchmarks/results/` of the repository, and what is measured and how in `benchmarks/README.md` there."
)
LAWS = (
    "Marks are medians, bars go from the least to the most of the repeats. Dashed: the line of least squares through "
    "the logarithms of the medians, over the larger sizes; its slope is the exponent, with Student's 95 % interval."
)
RATIOS = (
    "Solvers of the same problem, each timed until its answer is as accurate as silograph's, in turns. A ratio is a "
    "solver's time over silograph's in the same turn: the median (least–most), and where there are two of them, "
    "of the instances with the lowest and the highest. Other models are in the tables alone, without ratios."
)


def read(results: Path) -> dict[str, Record]:
    """The saved measurements, by suite; of those that there are."""
    files = {name: results / f"{name}.json" for name in NAMES}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


def draw(reports: dict[str, Record], images: Path) -> list[Path]:
    """All figures for which there are measurements."""
    alone, several = reports.get("one_silo", {}), reports.get("joint", {})
    figures = {
        "one-silo-growth": (alone.get("growth"), lambda to: draw_growth(one_silo.growth_of(alone), to)),
        "one-silo-solvers": (
            alone.get("instances"),
            lambda to: draw_solvers(alone["instances"], EVERYBODY, one_silo.TARGETS[-1], to),
        ),
        "joint-growth": (several.get("growth"), lambda to: draw_growth(joint.growth_of(several), to)),
        "joint-rounds": (several.get("growth"), lambda to: draw_rounds(joint.growth_of(several), to)),
        "joint-ratios": (several.get("instances"), lambda to: draw_ratios(several["instances"], PEERS, TARGET, to)),
    }
    paths = []
    for name, (measured, make) in figures.items():
        if measured:
            make(path := images / f"bench-{name}.svg")
            paths.append(path)
    return paths


def markdown(reports: dict[str, Record]) -> str:
    """The page."""
    lines = ["# Benchmarks", "", INTRODUCTION]
    pages = {name: page_of(name, report) for name, report in reports.items()}
    if "one_silo" in reports:
        growth = one_silo.growth_of(reports["one_silo"])
        lines += _head("One silo", pages["one_silo"])
        lines += _grown(growth, {"one-silo-growth": "Processor time of one silo over nodes and over samples"})
        lines += _compared("one-silo-solvers", "Processor time of solvers over nodes", pages["one_silo"])
    if "joint" in reports:
        growth = joint.growth_of(reports["joint"])
        figures = {
            "joint-growth": "Processor time of several silos over nodes, samples and silos",
            "joint-rounds": "Rounds over nodes, samples and silos",
        }
        lines += _head("Several silos", pages["joint"]) + _grown(growth, figures)
        lines += _compared("joint-ratios", "Ratios of times, solver by solver", pages["joint"])
        batches = [table for table in pages["joint"].tables if table.title.startswith("Many studies")]
        lines += [line for table in batches for line in ("", *table.markdown("###"))]
    if "start" in reports:
        lines += _head("The command line", pages["start"])
        lines += [line for table in pages["start"].tables for line in ("", *table.markdown("###"))]
    return "\n".join([*lines, ""])


def write_page(results: Path = ROOT / "benchmarks" / "results", docs: Path = DOCS) -> Path:
    """Make page and figures anew; where the page is."""
    reports = read(results)
    draw(reports, docs / "images")
    return write_text(docs / "benchmarks.md", markdown(reports))


def _head(title: str, page: Page) -> list[str]:
    return ["", f"## {title}", "", *page.introduction]


def _grown(growth: Growth, figures: dict[str, str]) -> list[str]:
    if not growth.records:
        return []
    lines = ["", "### How it grows", "", LAWS]
    for name, words in figures.items():
        lines += ["", f"![{words}](images/bench-{name}.svg)"]
    return [*lines, "", *growth.laws_table().rows_markdown(), "", *_largest(growth)]


def _largest(growth: Growth) -> list[str]:
    """The largest sizes, in words."""
    lines = []
    for axis in growth.measured():
        one = growth.along(axis)[-1]
        said = ", ".join(f"{WORDS[stage]} {durations(one['seconds'][stage])}" for stage in growth.stages)
        size = f"{growth.axes[axis]} = {one['case'][axis]} ({growth.fixed(axis)})"
        lines.append(f"* Largest {size}: {said}; peak memory {one['peak_mb']:.0f} MB.")
    return lines


def _compared(name: str, words: str, page: Page) -> list[str]:
    if not page.claims:
        return []
    claims = [f"* {line}" for line in page.claims]
    return ["", "### Beside others", "", RATIOS, "", f"![{words}](images/bench-{name}.svg)", "", *claims]


if __name__ == "__main__":
    print(write_page())
