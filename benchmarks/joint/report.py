"""The page about several silos, from the saved measurements alone."""

from __future__ import annotations

from statistics import quantiles

from benchmarks.joint.catalogue import COMPETITORS, ROUND_TOLERANCES, Case
from benchmarks.joint.claims import claims
from benchmarks.report import Page, Table, cell, columns, duration, machine_lines
from benchmarks.suite import Record

TARGETS = ("0.0001", "1e-06")
HOW_TO_READ = (
    "A cell: wall-clock time to relative error 1e-4 / to 1e-6; those times over silograph's; for CVXPY also the "
    "solver's own time, without translation. never: not within the limit, which all steps and tries share (best error "
    "instead); it may be the limit that is short."
)
REGIMES = ("apart", "one nearly fused", "some fused", "most fused", "all fused", "empty consensus")


def page(report: Record) -> Page:
    """The tables and the claims."""
    cores = f"{report['machine']['cpu_count']} cores, one thread per solver, but one worker per core in silograph"
    makers = {"instances": _instances, "neighbours": _neighbours, "scaling": _scaling, "rounds": _rounds}
    return Page(
        title="Several silos: time to the joint optimum",
        introduction=[*machine_lines(report, cores), HOW_TO_READ],
        tables=[maker(report[part]) for part, maker in makers.items() if part in report],
        claims=claims(report),
    )


def _instances(records: list[Record]) -> Table:
    took_part = columns(records, COMPETITORS)
    names = [one.name if one.same_model else f"{one.name} (other model)" for one in took_part]
    rows = [
        [
            str(Case(**record["case"])),
            f"{record['time_limit']:g} s, {record['load'] or '?'}",
            f"{record['instance']['fused']:.0f}",
            *(cell(record, one.name, TARGETS) for one in took_part),
        ]
        for record in records
    ]
    return Table(title="The joint problem", header=["instance", "limit, load before", "fused", *names], rows=rows)


def _neighbours(found: Record) -> Table:
    rows = [
        [name, duration(one["seconds"]), duration(one["first_seconds"]), f"{one['penalty']:g}", f"{one['degree']:.1f}"]
        if "penalty" in one
        else [name, one["outcome"], one.get("reason", ""), "", ""]
        for name, one in found["models"].items()
    ]
    case = Case(**found["case"])
    title = f"Other models, same signals (I = {case.n_silos}, d = {case.n_nodes}, N = {case.n_samples})"
    return Table(
        title=f"{title}, own default tolerance; silograph's degree is {found['degree']:.1f}",
        header=["another model", "one call", "first call (imports, compiles)", "penalty", "mean degree"],
        rows=rows,
    )


def _scaling(found: list[Record]) -> Table:
    rows = []
    for k, one in enumerate(found):
        before = found[k - 1] if k else {"peak_mb": one["before_mb"], "n_silos": 0}
        slope = (one["peak_mb"] - before["peak_mb"]) / (one["n_silos"] - before["n_silos"])
        counts = f"{one['rounds']} + {one['setup_rounds']}"
        numbers = [f"{one['seconds']:.2f}", counts, f"{one['gap']:.1e}", f"{one['peak_mb']:.0f}", f"{slope:.2f}"]
        rows.append([str(one["n_silos"]), str(one["n_nodes"]), *numbers])
    return Table(
        title="More silos, all settings left alone, set-up included",
        header=["silos", "nodes", "seconds", "rounds + set-up", "gap", "peak MB", "MB per further silo"],
        rows=rows,
    )


def _rounds(found: list[Record]) -> Table:
    rows = []
    for regime in (*REGIMES, "all"):
        group = [one for one in found if regime in (one["regime"], "all")]
        for tol in (f"{tol:g}" for tol in ROUND_TOLERANCES):
            if group:
                missed = sum(not one["certified"][tol] for one in group)
                counts = _quantiles([one["rounds"][tol] for one in group])
                rows.append([regime, str(len(group)), tol, *counts, str(missed)])
    header = ["regime", "instances", "tolerance", "least", "25 %", "median", "75 %", "90 %", "most", "not certified"]
    return Table(title="Rounds until certified, over all regimes", header=header, rows=rows)


def _quantiles(counts: list[int]) -> list[str]:
    twentieths = quantiles(counts, n=20, method="inclusive") if len(counts) > 1 else [counts[0]] * 19
    inner = [twentieths[k - 1] for k in (5, 10, 15, 18)]
    return [f"{value:.0f}" for value in (min(counts), *inner, max(counts))]
