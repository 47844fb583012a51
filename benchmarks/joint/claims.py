"""What the measurements say in a line per competitor: how far ahead of it or behind it, and whether that is the aim."""

from __future__ import annotations

from benchmarks.joint.catalogue import COMPETITORS, NEIGHBOUR_CASE, ONE_WORKER, TIMED_LIMIT, TIMED_SILOS
from benchmarks.report import seconds_of, times
from benchmarks.suite import OURS, Record

AIM = 10.0  # times faster than anyone


def claims(report: Record) -> list[str]:
    """All claims, as measured."""
    records = report.get("instances", [])
    names = [one.name for one in COMPETITORS if one.name not in (OURS, ONE_WORKER)]
    lines = [line for name in names for line in _lead(records, name)]
    lines += [
        _neighbour(records, name, found) for name, found in report.get("neighbours", {}).get("models", {}).items()
    ]
    timed = [one["seconds"] for one in report.get("scaling", []) if one["n_silos"] == TIMED_SILOS]
    lines += [f"{TIMED_SILOS} silos of 100 nodes: {seconds:.1f} s (aim: below {TIMED_LIMIT:g} s)" for seconds in timed]
    return lines


def _lead(records: list[Record], name: str) -> list[str]:
    ran = [record for record in records if record["solvers"].get(name, {}).get("outcome") not in (None, "skipped")]
    if not ran:
        return []
    lines = [_range(ran, name, "seconds", f"{name} / {OURS} to 1e-6")]
    if any(record["solvers"][name].get("solver_seconds") for record in ran):
        lines.append(_range(ran, name, "solver_seconds", f"{name}, solver alone / {OURS} to 1e-6"))
    return lines


def _range(records: list[Record], name: str, field: str, label: str) -> str:
    pairs = [(seconds_of(record, name, "1e-06", field), seconds_of(record, OURS, "1e-06")) for record in records]
    ratios = [theirs / ours for theirs, ours in pairs if theirs and ours]
    never = sum(theirs is None for theirs, _ in pairs)
    missed = f"; not reached on {never} of {len(pairs)}" if never else ""
    if not ratios:
        return f"{label}: never reached"
    return f"{label}: {times(min(ratios))} to {times(max(ratios))}{missed} ({_verdict(min(ratios))})"


def _neighbour(records: list[Record], name: str, found: Record) -> str:
    if "penalty" not in found:
        return f"{name}: {found['outcome']} ({found.get('reason', 'no reason given')})"
    size = (NEIGHBOUR_CASE.n_silos, NEIGHBOUR_CASE.n_nodes)
    same = [record for record in records if (record["case"]["n_silos"], record["case"]["n_nodes"]) == size]
    ours = [seconds for record in same if (seconds := seconds_of(record, OURS, "1e-06"))]
    if not ours:
        return f"{name}: {found['seconds']:.3g} s"
    low, high = found["seconds"] / max(ours), found["seconds"] / min(ours)
    return f"{name} (another model) / {OURS} to 1e-6: {times(low)} to {times(high)} ({_verdict(low)})"


def _verdict(ratio: float) -> str:
    if ratio >= AIM:
        return f"aim of {AIM:g}× met"
    return f"aim of {AIM:g}× missed" + (f": {OURS} is slower" if ratio < 1 else "")
