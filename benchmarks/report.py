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

from benchmarks.suite import OURS, Competitor, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `<br>` breaks a line in a cell."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that is told about a suite's measurements."""

    title: str
    introduction: Sequence[str]
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
        lines = [f"# {self.title}", "", *self.introduction]
        for table in self.tables:
            rows = [_line(table.header), "|---" * len(table.header) + "|", *map(_line, table.rows)]
            lines += ["", f"## {table.title}", "", *rows]
        return "\n".join([*lines, "", "## As measured", "", *(f"* {line}" for line in self.claims), ""])


def machine_lines(report: Record, cores: str) -> list[str]:
    """What it was measured on; and a warning where not all was measured on the same code."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    lines = [f"{machine['cpu']}, {cores}, {machine['system']},", f"Python {machine['python']}, {versions}."]
    parts = [part for part in report.values() if isinstance(part, list)]
    codes = {one["code"] for part in parts for one in part}
    mixed = f"**Measured on {len(codes)} versions of silograph: run it anew before quoting.**"
    return [*lines, mixed] if len(codes) > 1 else lines


def columns(records: Sequence[Record], competitors: Sequence[Competitor]) -> list[Competitor]:
    """Those of the competitors who took part."""
    return [one for one in competitors if any(one.name in record["solvers"] for record in records)]


def seconds_of(record: Record, name: str, target: str, field: str = "seconds") -> float | None:
    """The time to the target; None where it was not reached or not run."""
    seconds: float | None = record["solvers"].get(name, {}).get(field, {}).get(target)
    return seconds


def cell(record: Record, name: str, targets: Sequence[str]) -> str:
    """What was found about one solver on one instance."""
    result = record["solvers"].get(name, {"outcome": ""})
    if result["outcome"] not in ("ran", "diverged"):
        return "<br>".join([result["outcome"], *([result["reason"]] if "reason" in result else [])])
    lines = [" / ".join(duration(seconds_of(record, name, target)) for target in targets)]
    if name != OURS and result["seconds"]:
        lines.append(" / ".join(_ratio(record, name, target) for target in targets))
    if result.get("solver_seconds"):
        alone = [seconds_of(record, name, target, "solver_seconds") for target in targets]
        lines.append("alone " + " / ".join(duration(seconds) for seconds in alone))
    if len(result["seconds"]) < len(targets):
        lines.append(_shortfall(result))
    if "peak_mb" in result:
        lines.append(f"{result['peak_mb']:.0f} MB")
    return "<br>".join(lines)


def duration(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None:
        return "never"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def times(ratio: float) -> str:
    """A ratio for people."""
    if ratio == float("inf"):
        return "∞ (not reached in time)"
    return f"{ratio:.2g}×" if ratio < 10 else f"{ratio:.0f}×"


def _shortfall(result: Record) -> str:
    if result["outcome"] == "diverged":
        return "diverged"
    return "error ∞" if result["best_error"] is None else f"error {result['best_error']:.0e}"


def _ratio(record: Record, name: str, target: str) -> str:
    ours, theirs = seconds_of(record, OURS, target), seconds_of(record, name, target)
    return "—" if ours is None or theirs is None else times(theirs / ours)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    source = Path(sys.argv[2])
    made = importlib.import_module(f"benchmarks.{sys.argv[1]}.report").page(json.loads(source.read_text()))
    source.with_suffix(".md").write_text(made.markdown())
    made.show()
