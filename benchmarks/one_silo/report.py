"""The page about one silo, from the saved measurements alone.

In a line each: how far ahead of the best first-order method, also of those in the form their authors published, and
where behind anyone.
"""

from __future__ import annotations

from benchmarks.one_silo.catalogue import EVERYBODY, Case
from benchmarks.report import Page, Table, cell, columns, machine_lines, seconds_of, times
from benchmarks.suite import OURS, Record

CLAIMED_SIZES = (500, 1000)
TARGETS = ("0.0001", "1e-08")
HOW_TO_READ = (
    "A cell: processor time to relative gap 1e-4 / to 1e-8; those times over silograph's; peak memory of the process. "
    "never: not within the limit (best gap instead). Small print in the README."
)


def page(report: Record) -> Page:
    """The table and the claims."""
    records = report["instances"]
    limits = " to ".join(f"{limit:g}" for limit in sorted({record["time_limit"] for record in records}))
    cores = f"one of {report['machine']['cpu_count']} cores, time limit {limits} s"
    names = [one.name for one in columns(records, EVERYBODY)]
    rows = [[str(Case(**record["case"])), *(cell(record, name, TARGETS) for name in names)] for record in records]
    return Page(
        title="One silo: time to certified accuracy",
        introduction=[*machine_lines(report, cores), HOW_TO_READ],
        tables=[Table(title="One silo's problem", header=["instance", *names], rows=rows)],
        claims=claims(records),
    )


def claims(records: list[Record]) -> list[str]:
    """The claims as measured, ranges being over the instances of one size."""
    published = {one.name for one in EVERYBODY if one.first_order and one.published}
    first_order = {one.name for one in EVERYBODY if one.first_order}
    behind = "; ".join(_behind(records)) or "none"
    return [
        f"best published first-order / {OURS} to 1e-8 {_leads(records, published)}",
        f"best first-order / {OURS} to 1e-8 {_leads(records, first_order)}; slower than a peer at any d: {behind}",
    ]


def _leads(records: list[Record], names: set[str]) -> str:
    return ", ".join(f"at d={n_nodes}: {_lead(records, n_nodes, names)}" for n_nodes in CLAIMED_SIZES)


def _lead(records: list[Record], n_nodes: int, names: set[str]) -> str:
    ratios = []
    for record in records:
        ours = seconds_of(record, OURS, "1e-08")
        theirs = [seconds_of(record, name, "1e-08") for name in names]
        if record["case"]["n_nodes"] == n_nodes and ours:
            ratios.append(min((seconds for seconds in theirs if seconds is not None), default=float("inf")) / ours)
    if not ratios:
        return "not measured"
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def _behind(records: list[Record]) -> list[str]:
    found = []
    for record in records:
        case = record["case"]
        for target in TARGETS:
            ours = seconds_of(record, OURS, target)
            peers = {name: seconds_of(record, name, target) for name in record["solvers"] if name != OURS}
            faster = {name: seconds for name, seconds in peers.items() if seconds and (not ours or seconds < ours)}
            if faster:
                best = min(faster, key=lambda name: faster[name])
                by = times(ours / faster[best]) if ours else "not reached"
                label = f"{case['dataset']} k={case['degree']} d={case['n_nodes']}"
                found.append(f"{label} to {float(target):.0e} ({best}, {by})")
    return found
