"""The table, for the screen and for a page, from the saved measurements alone.

Run as `python -m benchmarks.report benchmarks/results/one_silo.json` to make both again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.catalogue import COMPETITORS, OURS, Case
from benchmarks.claims import TARGETS, Record, claims, published_claim, seconds_of

HOW_TO_READ = (
    "A cell: time to relative gap 1e-4 / to 1e-8; those times over silograph's; peak memory of the process. "
    "— : not reached within the limit (best gap instead). Small print in the README."
)


def show(report: dict[str, Any]) -> None:
    """Print the table and the claims."""
    from rich.console import Console
    from rich.table import Table

    records: list[Record] = report["records"]
    names = _columns(records)
    console = Console(width=34 + 20 * len(names))
    table = Table(title="Time to certified accuracy, one thread", show_lines=True, caption=HOW_TO_READ)
    table.add_column("instance")
    for name in names:
        table.add_column(name, no_wrap=True)
    for record in records:
        table.add_row(_label(record), *("\n".join(_cell(record, name)) for name in names))
    console.print(table)
    print(published_claim(records))
    print(claims(records))


def markdown(report: dict[str, Any]) -> str:
    """The same as a Markdown page."""
    records: list[Record] = report["records"]
    names = _columns(records)
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    rows = [
        "| " + " | ".join([_label(record), *("<br>".join(_cell(record, name)) for name in names)]) + " |"
        for record in records
    ]
    return "\n".join(
        [
            "# One silo: time to certified accuracy",
            "",
            f"{machine['cpu']}, one of {machine['cpu_count']} cores, {machine['system']}, Python {machine['python']},",
            f"{versions}; time limit {report['time_limit']:g} s. {HOW_TO_READ}",
            "",
            "| " + " | ".join(["instance", *names]) + " |",
            "|---" * (len(names) + 1) + "|",
            *rows,
            "",
            f"* {published_claim(records)}",
            f"* {claims(records)}",
            "",
        ]
    )


def _columns(records: list[Record]) -> list[str]:
    run = {name for record in records for name in record["solvers"]}
    return [competitor.name for competitor in COMPETITORS if competitor.name in run]


def _label(record: Record) -> str:
    return str(Case(**record["case"]))


def _cell(record: Record, name: str) -> list[str]:
    result = record["solvers"].get(name)
    if result is None:
        return [""]
    if result["outcome"] in ("skipped", "failed", "out of time"):
        return [result["outcome"]]
    lines = [" / ".join(_duration(seconds_of(record, name, target)) for target in TARGETS)]
    if name != OURS and result["seconds"]:
        lines.append(" / ".join(_ratio(record, name, target) for target in TARGETS))
    if len(result["seconds"]) < len(TARGETS):
        lines.append(_shortfall(result))
    lines.append(f"{result['peak_mb']:.0f} MB")
    return lines


def _shortfall(result: Record) -> str:
    if result["outcome"] == "diverged":
        return "diverged"
    return "gap ∞" if result["best_gap"] is None else f"gap {result['best_gap']:.0e}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _ratio(record: Record, name: str, target: str) -> str:
    ours, theirs = seconds_of(record, OURS, target), seconds_of(record, name, target)
    if ours is None or theirs is None:
        return "—"
    ratio = theirs / ours
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:.0f}×"


if __name__ == "__main__":
    source = Path(sys.argv[1])
    saved = json.loads(source.read_text())
    source.with_suffix(".md").write_text(markdown(saved))
    show(saved)
