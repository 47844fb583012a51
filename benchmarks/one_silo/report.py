"""The page about one silo, from the saved measurements alone.

In a line each: how far ahead of the best first-order method, also of those in the form their authors published, and
where behind anyone.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fits import Spread
from benchmarks.growth import Growth
from benchmarks.one_silo.catalogue import AXES, EVERYBODY, FITTED_FROM, STAGES, Case
from benchmarks.report import Page, Table, cell, columns, machine_lines, ratio_of, records_of, times_spread
from benchmarks.suite import OURS, Competitor, Record

CLAIMED_SIZES = (500, 1000)
TARGETS = ("0.0001", "1e-08")
HOW_TO_READ = (
    "A cell: processor time to relative gap 1e-4 / to 1e-8, in the median of laps in which solvers took turns; those "
    "times over silograph's of the same lap, median (least–most); for CVXPY also the solver's own time, without "
    "translation; peak memory of the process. never: not within the limit (best gap instead). Growth: processor time, "
    "median (least to most) over signals drawn anew; an exponent is the slope of log time over log size. "
    "Small print in the README."
)


def page(report: Record) -> Page:
    """The tables and the claims."""
    records = report.get("instances", [])
    every = {one["made"]["effort"]["time_limit"] for one in records_of(report)}
    limits = " to ".join(f"{limit:g}" for limit in sorted(every))
    cores = f"one of {report['machine']['cpu_count']} cores, time limit {limits} s"
    return Page(
        title="One silo: time to certified accuracy",
        introduction=machine_lines(report, cores),
        how_to_read=HOW_TO_READ,
        tables=[*([_instances(records)] if records else []), *growth_of(report).tables()],
        claims=claims(records),
    )


def growth_of(report: Record) -> Growth:
    """The part about growth."""
    return Growth(records=report.get("growth", []), axes=AXES, stages=STAGES, fitted_from=FITTED_FROM)


def _instances(records: list[Record]) -> Table:
    took_part = columns(records, EVERYBODY)
    header = ["instance", "load before", *(one.name for one in took_part)]
    rows = [
        [str(Case(**record["case"])), f"{record['load']:g}", *(cell(record, one, TARGETS) for one in took_part)]
        for record in records
    ]
    return Table(title="One silo's problem", header=header, rows=rows)


def claims(records: list[Record]) -> list[str]:
    """The claims as measured, ranges being over the instances of one size."""
    published = [one for one in EVERYBODY if one.first_order and one.published]
    first_order = [one for one in EVERYBODY if one.first_order]
    behind = "; ".join(_behind(records)) or "none"
    return [
        f"best published first-order / {OURS} to 1e-8 {_leads(records, published)}",
        f"best first-order / {OURS} to 1e-8 {_leads(records, first_order)}; slower than a peer at any d: {behind}",
    ]


def lead(record: Record, competitors: Sequence[Competitor], target: str = "1e-08") -> Spread:
    """The time of the best of them over silograph's; infinite where none got there."""
    ratios = [ratio for one in competitors if (ratio := ratio_of(record, one, target))]
    never = Spread(median=float("inf"), least=float("inf"), most=float("inf"))
    return min(ratios, key=lambda ratio: ratio.median, default=never)


def _leads(records: list[Record], competitors: Sequence[Competitor]) -> str:
    return ", ".join(f"at d={n_nodes}: {_range(records, n_nodes, competitors)}" for n_nodes in CLAIMED_SIZES)


def _range(records: list[Record], n_nodes: int, competitors: Sequence[Competitor]) -> str:
    here = [record for record in records if record["case"]["n_nodes"] == n_nodes]
    ratios = sorted((lead(record, competitors) for record in here), key=lambda ratio: ratio.median)
    if not ratios:
        return "not measured"
    low, high = times_spread(ratios[0]), times_spread(ratios[-1])
    return low if low == high else f"{low} to {high}"


def _behind(records: list[Record]) -> list[str]:
    """Where somebody was there first in the median lap."""
    found = []
    for record in records:
        case = record["case"]
        for target in TARGETS:
            ratios = {
                one.name: ratio for one in EVERYBODY if one.name != OURS and (ratio := ratio_of(record, one, target))
            }
            faster = {name: ratio for name, ratio in ratios.items() if ratio.median < 1}
            if faster:
                best = min(faster, key=lambda name: faster[name].median)
                label = f"{case['dataset']} k={case['degree']} d={case['n_nodes']}"
                found.append(f"{label} to {float(target):.0e} ({best}, {times_spread(faster[best])})")
    return found
