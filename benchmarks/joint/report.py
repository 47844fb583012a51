"""The page about several silos, from the saved measurements alone."""

from __future__ import annotations

from statistics import quantiles

from benchmarks.growth import Growth
from benchmarks.joint.catalogue import AXES, BATCH_TOL, COMPETITORS, FITTED_FROM, ROUND_TOLERANCES, STAGES, Batch, Case
from benchmarks.joint.claims import claims
from benchmarks.report import Page, Table, cell, columns, duration, durations, machine_lines
from benchmarks.suite import Competitor, Record

TARGETS = ("0.0001", "1e-06")
HOW_TO_READ = (
    "A cell: wall-clock time to relative error 1e-4 / to 1e-6, in the median of laps in which solvers took turns; "
    "those times over silograph's of the same lap, median (least–most); for CVXPY also the solver's own time, without "
    "translation. never: not within the limit, which all steps and tries share (best error instead); it may be the "
    "limit that is short. Growth: processor time with one worker, median (least to most) over signals drawn anew; an "
    "exponent is the slope of log time over log size. Other models have no ratios."
)
REGIMES = ("apart", "one nearly fused", "some fused", "most fused", "all fused", "empty consensus")


def page(report: Record) -> Page:
    """The tables and the claims."""
    cores = f"{report['machine']['cpu_count']} cores, one thread per solver, but one worker per core in silograph"
    makers = {
        "instances": _instances,
        "neighbours": _neighbours,
        "growth": _growth,
        "rounds": _rounds,
        "batches": _batches,
    }
    tables = [table for part, maker in makers.items() if report.get(part) for table in maker(report[part])]
    return Page(
        title="Several silos: time to the joint optimum",
        introduction=machine_lines(report, cores),
        how_to_read=HOW_TO_READ,
        tables=tables,
        claims=claims(report),
    )


def growth_of(report: Record) -> Growth:
    """The part about growth."""
    return Growth(records=report.get("growth", []), axes=AXES, stages=STAGES, fitted_from=FITTED_FROM)


def _growth(records: list[Record]) -> list[Table]:
    return growth_of({"growth": records}).tables()


def _instances(records: list[Record]) -> list[Table]:
    took_part = columns(records, COMPETITORS)
    same, other = ([one for one in took_part if one.same_model is which] for which in (True, False))
    tables = [_cells("The joint problem", records, same)]
    if other:
        tables.append(_cells("Another model of the same instances, to its own optimum", records, other))
    return tables


def _cells(title: str, records: list[Record], competitors: list[Competitor]) -> Table:
    rows = [
        [
            str(Case(**record["case"])),
            f"{record['made']['effort']['time_limit']:g} s, {record['load']:g}",
            f"{record['instance']['fused']:.0f}",
            *(cell(record, one, TARGETS) for one in competitors),
        ]
        for record in records
    ]
    header = ["instance", "limit, load before", "fused", *(one.name for one in competitors)]
    return Table(title=title, header=header, rows=rows)


def _neighbours(records: list[Record]) -> list[Table]:
    rows = []
    for one in records:
        case = one["case"]
        signals = f"I = {case['n_silos']}, d = {case['n_nodes']}, N = {case['n_samples']}"
        if one["outcome"] != "ran":
            rows.append([case["model"], signals, one["outcome"], "", "", "", ""])
            continue
        seconds = [durations(one["seconds"]), duration(one["first_seconds"])]
        degrees = [f"{one['penalty']:g}", f"{one['degree']:.1f}", f"{one['our_degree']:.1f}"]
        rows.append([case["model"], signals, *seconds, *degrees])
    times = ["one call", "first call (imports, compiles)"]
    header = ["another model", "signals", *times, "penalty", "mean degree", "silograph's degree"]
    return [Table(title="Other models, same signals, own default tolerance", header=header, rows=rows)]


def _rounds(records: list[Record]) -> list[Table]:
    found = [one for record in records for one in record["found"]]
    rows = []
    for regime in (*REGIMES, "all"):
        group = [one for one in found if regime in (one["regime"], "all")]
        for tol in (f"{tol:g}" for tol in ROUND_TOLERANCES):
            if group:
                missed = sum(not one["certified"][tol] for one in group)
                counts = _quantiles([one["rounds"][tol] for one in group])
                rows.append([regime, str(len(group)), tol, *counts, str(missed)])
    header = ["regime", "instances", "tolerance", "least", "25 %", "median", "75 %", "90 %", "most", "not certified"]
    return [Table(title="Rounds until certified, over all regimes", header=header, rows=rows)]


def _batches(records: list[Record]) -> list[Table]:
    rows = []
    for one in records:
        case = Batch(**one["case"])
        rounds = f"{one['mean_rounds']:.1f}, {one['most_rounds']}"
        rows.append([str(case), durations(one["seconds"]), rounds, f"{one['certified']} of {case.n_studies}"])
    header = ["studies in one call", "wall clock", "rounds, mean and most", "certified"]
    return [Table(title=f"Many studies in one call, to {BATCH_TOL:g}", header=header, rows=rows)]


def _quantiles(counts: list[int]) -> list[str]:
    twentieths = quantiles(counts, n=20, method="inclusive") if len(counts) > 1 else [counts[0]] * 19
    inner = [twentieths[k - 1] for k in (5, 10, 15, 18)]
    return [f"{value:.0f}" for value in (min(counts), *inner, max(counts))]
