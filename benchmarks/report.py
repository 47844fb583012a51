"""A page of tables, for the screen and in Markdown, and the words for what was measured.

Run as `python -m benchmarks.report one_silo benchmarks/results/one_silo.json` to make a page again from its data.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.fits import PowerLaw, Spread, spread
from benchmarks.suite import OURS, Competitor, Record

BUSY = 0.75  # of the cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `<br>` breaks a line in a cell."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self, level: str) -> list[str]:
        """Its lines in Markdown, under a heading of this level."""
        return [f"{level} {self.title}", "", *self.rows_markdown()]

    def rows_markdown(self) -> list[str]:
        """The same without the title."""
        return [_line(self.header), "|---" * len(self.header) + "|", *map(_line, self.rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that is told about a suite's measurements."""

    title: str
    introduction: Sequence[str]  # what it was measured on
    how_to_read: str  # the tables
    tables: Sequence[Table]
    claims: Sequence[str]

    def show(self) -> None:
        """Print the tables and the claims."""
        from rich.console import Console
        from rich.table import Table as Screen

        for table in self.tables:
            screen = Screen(title=table.title, show_lines=True)
            for name in table.header:
                screen.add_column(name, no_wrap=True)
            for row in table.rows:
                screen.add_row(*(cell.replace("<br>", "\n") for cell in row))
            Console(width=30 + 24 * len(table.header)).print(screen)
        print("\n".join(self.claims))

    def markdown(self) -> str:
        """The same as a Markdown page."""
        lines = [f"# {self.title}", "", *self.introduction, "", self.how_to_read]
        for table in self.tables:
            lines += ["", *table.markdown("##")]
        return "\n".join([*lines, "", "## As measured", "", *(f"* {line}" for line in self.claims), ""])


def machine_lines(report: Record, cores: str) -> list[str]:
    """What it was measured on, how busy that was; and a warning where not all was measured by the same code."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    records = records_of(report)
    lines = [f"{machine['cpu']}, {cores}, {machine['system']},", f"Python {machine['python']}, {versions}."]
    lines += ["", load_line(records, machine["cpu_count"])]
    mixed = {
        "versions of the code": {one["made"]["code"] for one in records},
        "processors": {one["made"]["cpu"] for one in records},
        "settings": {str(one["made"]["effort"]) for one in records},
    }
    told = [f"{len(values)} {name}" for name, values in mixed.items() if len(values) > 1]
    if told:
        lines += ["", f"**Measured with {' and '.join(told)}: run it anew before quoting.**"]
    return lines


def records_of(report: Record) -> list[Record]:
    """Of all parts."""
    return [one for part in report.values() if isinstance(part, list) for one in part]


def load_line(records: Sequence[Record], cpu_count: int) -> str:
    """How busy the machine was before each case; one core is what the benchmark itself keeps busy."""
    loads = spread([one["load"] for one in records])
    said = f"Load average before each case: median {loads.median:.2g}, most {loads.most:.2g}, on {cpu_count} cores."
    busy = sum(one["load"] > BUSY * cpu_count for one in records)
    return (
        f"{said} **Before {busy} of {len(records)} cases the machine was busy: trust ratios more than seconds.**"
        if busy
        else said
    )


def columns(records: Sequence[Record], competitors: Sequence[Competitor]) -> list[Competitor]:
    """Those of the competitors who took part."""
    return [one for one in competitors if any(one.name in record["solvers"] for record in records)]


def laps_of(record: Record, name: str, target: str, field: str = "seconds") -> list[float]:
    """The times to the target, lap by lap; none where it was not reached or not run."""
    return [lap[field][target] for lap in record["solvers"].get(name, {"laps": []})["laps"] if target in lap[field]]


def seconds_of(record: Record, name: str, target: str, field: str = "seconds") -> float | None:
    """The time to the target in the median lap; None where it was not reached or not run."""
    laps = laps_of(record, name, target, field)
    return median(laps) if laps else None


def ratio_of(record: Record, competitor: Competitor, target: str, field: str = "seconds") -> Spread | None:
    """The competitor's time over silograph's, lap by lap; None where one of them has none."""
    if not competitor.same_model:
        raise ValueError(f"{competitor.name} solves another model: its times are listed, never as a ratio to ours.")
    theirs, ours = laps_of(record, competitor.name, target, field), laps_of(record, OURS, target)
    ratios = [their / our for their, our in zip(theirs, ours, strict=False)]  # who is slow sits out the last laps
    return spread(ratios) if ratios else None


def cell(record: Record, competitor: Competitor, targets: Sequence[str]) -> str:
    """What was found about one solver on one instance."""
    result = record["solvers"].get(competitor.name, {"outcome": ""})
    if result["outcome"] not in ("ran", "diverged"):
        return "<br>".join([result["outcome"], *([result["reason"]] if "reason" in result else [])])
    name = competitor.name
    lines = [" / ".join(duration(seconds_of(record, name, target)) for target in targets)]
    if name != OURS and competitor.same_model and result["laps"]:
        lines.append(" / ".join(_ratio(record, competitor, target, "seconds") for target in targets))
    alone = [seconds_of(record, name, target, "solver_seconds") for target in targets]
    if any(alone):
        lines.append("alone " + " / ".join(duration(seconds) for seconds in alone))
        if competitor.same_model:
            lines.append(
                "alone " + " / ".join(_ratio(record, competitor, target, "solver_seconds") for target in targets)
            )
    if len(result["effort"]) < len(targets):
        lines.append(_shortfall(result))
    if "peak_mb" in result:
        lines.append(f"{result['peak_mb']:.0f} MB")
    return "<br>".join(lines)


def duration(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None:
        return "never"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def durations(values: Sequence[float]) -> str:
    """Times of the same work for people: the median, and the least and the most."""
    one = spread(values)
    return f"{duration(one.median)} ({duration(one.least)} to {duration(one.most)})"


def times(ratio: float) -> str:
    """A ratio for people."""
    if ratio == float("inf"):
        return "∞ (not reached in time)"
    return f"{_figure(ratio)}×"


def times_spread(ratio: Spread) -> str:
    """A ratio for people, with the least and the most over laps where they differ."""
    low, high = _figure(ratio.least), _figure(ratio.most)
    return times(ratio.median) if low == high else f"{times(ratio.median)} ({low}–{high})"


def exponent(law: PowerLaw | None) -> str:
    """A power law for people."""
    if law is None:
        return "too few sizes"
    slope, low, high = (f"{round(one, 2) + 0.0:.2f}" for one in (law.exponent, law.low, law.high))  # never −0.00
    return f"{slope} ({low} to {high})"


def _figure(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _shortfall(result: Record) -> str:
    if result["outcome"] == "diverged":
        return "diverged"
    return "error ∞" if result["best_error"] is None else f"error {result['best_error']:.0e}"


def _ratio(record: Record, competitor: Competitor, target: str, field: str) -> str:
    ratio = ratio_of(record, competitor, target, field)
    return "—" if ratio is None else times_spread(ratio)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    source = Path(sys.argv[2])
    made = importlib.import_module(f"benchmarks.{sys.argv[1]}.report").page(json.loads(source.read_text()))
    source.with_suffix(".md").write_text(made.markdown())
    made.show()
