"""The tables, for the screen and for a page, from the saved measurements alone.

Run as `python -m benchmarks.joint.report benchmarks/results/joint.json` to make both again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.joint.catalogue import COMPETITORS, OURS, ROUND_TOLERANCES, Case
from benchmarks.joint.claims import TARGETS, Record, claims, seconds_of, times

Rows = list[list[str]]

HOW_TO_READ = (
    "A cell: wall-clock time to relative error 1e-4 / to 1e-6; those times over silograph's; for CVXPY also the "
    "solver's own time, without translation. never: not within the limit, which all steps and tries share (best error "
    "instead); it may be the limit that is short."
)
REGIMES = ("apart", "one nearly fused", "some fused", "most fused", "all fused", "empty consensus")


def show(report: dict[str, Any]) -> None:
    """Print the tables and the claims."""
    from rich.console import Console
    from rich.table import Table

    for title, header, rows in _tables(report):
        table = Table(title=title, show_lines=True)
        for name in header:
            table.add_column(name, no_wrap=True)
        for row in rows:
            table.add_row(*(cell.replace("<br>", "\n") for cell in row))
        Console(width=30 + 24 * len(header)).print(table)
    print("\n".join(claims(report)))


def markdown(report: dict[str, Any]) -> str:
    """The same as a Markdown page."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    lines = [
        "# Several silos: time to the joint optimum",
        "",
        f"{machine['cpu']}, {machine['cpu_count']} cores, {machine['system']},",
        f"Python {machine['python']}, {versions}; one thread per solver, but one worker per core in silograph.",
        HOW_TO_READ,
        *_mixed(report),
    ]
    for title, header, rows in _tables(report):
        lines += ["", f"## {title}", "", _line(header), "|---" * len(header) + "|", *map(_line, rows)]
    lines += ["", "## As measured", "", *(f"* {line}" for line in claims(report)), ""]
    return "\n".join(lines)


def _mixed(report: dict[str, Any]) -> list[str]:
    """A warning where not all was measured on the same code."""
    codes = {one["code"] for part in ("instances", "scaling", "rounds") for one in report.get(part, [])}
    return [f"**Measured on {len(codes)} versions of silograph: run it anew before quoting.**"] * (len(codes) > 1)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _tables(report: dict[str, Any]) -> list[tuple[str, list[str], Rows]]:
    makers = {"instances": _instances, "neighbours": _neighbours, "scaling": _scaling, "rounds": _rounds}
    return [maker(report[part]) for part, maker in makers.items() if part in report]


def _instances(records: list[Record]) -> tuple[str, list[str], Rows]:
    names = [one.name for one in COMPETITORS if any(one.name in record["solvers"] for record in records)]
    header = [
        "instance",
        "limit, load before",
        "fused",
        *(name if _same(name) else f"{name} (other model)" for name in names),
    ]
    rows = [
        [
            str(Case(**record["case"])),
            f"{record['time_limit']:g} s, {record['load'] or '?'}",
            f"{record['instance']['fused']:.0f}",
            *("<br>".join(_cell(record, name)) for name in names),
        ]
        for record in records
    ]
    return "The joint problem", header, rows


def _same(name: str) -> bool:
    return next(one.same_model for one in COMPETITORS if one.name == name)


def _cell(record: Record, name: str) -> list[str]:
    result = record["solvers"].get(name, {"outcome": ""})
    if result["outcome"] != "ran":
        return [result["outcome"], *([result["reason"]] if "reason" in result else [])]
    lines = [" / ".join(_duration(seconds_of(record, name, target)) for target in TARGETS)]
    if name != OURS and result["seconds"]:
        lines.append(" / ".join(_ratio(record, name, target) for target in TARGETS))
    if result["solver_seconds"]:
        alone = [seconds_of(record, name, target, "solver_seconds") for target in TARGETS]
        lines.append("alone " + " / ".join(_duration(seconds) for seconds in alone))
    if len(result["seconds"]) < len(TARGETS):
        lines.append("error ∞" if result["best_error"] is None else f"error {result['best_error']:.0e}")
    return lines


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _ratio(record: Record, name: str, target: str) -> str:
    ours, theirs = seconds_of(record, OURS, target), seconds_of(record, name, target)
    return "—" if ours is None or theirs is None else times(theirs / ours)


def _neighbours(found: Record) -> tuple[str, list[str], Rows]:
    header = ["another model", "one call", "first call (imports, compiles)", "penalty", "mean degree"]
    rows = [
        [
            name,
            _duration(one["seconds"]),
            _duration(one["first_seconds"]),
            f"{one['penalty']:g}",
            f"{one['degree']:.1f}",
        ]
        if "penalty" in one
        else [name, one["outcome"], one.get("reason", ""), "", ""]
        for name, one in found["models"].items()
    ]
    case = Case(**found["case"])
    title = f"Other models, same signals (I = {case.n_silos}, d = {case.n_nodes}, N = {case.n_samples})"
    return f"{title}, own default tolerance; silograph's degree is {found['degree']:.1f}", header, rows


def _scaling(found: list[Record]) -> tuple[str, list[str], Rows]:
    header = ["silos", "nodes", "seconds", "rounds + set-up", "gap", "peak MB", "MB per further silo"]
    rows = []
    for k, one in enumerate(found):
        before = found[k - 1] if k else {"peak_mb": one["before_mb"], "n_silos": 0}
        slope = (one["peak_mb"] - before["peak_mb"]) / (one["n_silos"] - before["n_silos"])
        counts = f"{one['rounds']} + {one['setup_rounds']}"
        numbers = [f"{one['seconds']:.2f}", counts, f"{one['gap']:.1e}", f"{one['peak_mb']:.0f}", f"{slope:.2f}"]
        rows.append([str(one["n_silos"]), str(one["n_nodes"]), *numbers])
    return "More silos, all settings left alone, set-up included", header, rows


def _rounds(found: list[Record]) -> tuple[str, list[str], Rows]:
    header = ["regime", "instances", "tolerance", "least", "25 %", "median", "75 %", "90 %", "most", "not certified"]
    rows = []
    for regime in (*REGIMES, "all"):
        group = [one for one in found if regime in (one["regime"], "all")]
        for tol in (f"{tol:g}" for tol in ROUND_TOLERANCES):
            if group:
                missed = sum(not one["certified"][tol] for one in group)
                counts = _quantiles([one["rounds"][tol] for one in group])
                rows.append([regime, str(len(group)), tol, *counts, str(missed)])
    return "Rounds until certified, over all regimes", header, rows


def _quantiles(counts: list[int]) -> list[str]:
    twentieths = quantiles(counts, n=20, method="inclusive") if len(counts) > 1 else [counts[0]] * 19
    inner = [twentieths[k - 1] for k in (5, 10, 15, 18)]
    return [f"{value:.0f}" for value in (min(counts), *inner, max(counts))]


if __name__ == "__main__":
    source = Path(sys.argv[1])
    saved = json.loads(source.read_text())
    source.with_suffix(".md").write_text(markdown(saved))
    show(saved)
