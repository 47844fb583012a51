"""What the measurements say in a line per competitor: how far ahead of it or behind it, and whether that is the aim.

Of other models nothing is said here: a time to another answer is no ratio.
"""

from __future__ import annotations

from benchmarks.joint.catalogue import COMPETITORS, ONE_WORKER, TIMED_LIMIT, TIMED_NODES, TIMED_SILOS
from benchmarks.report import durations, laps_of, ratio_of, times_spread
from benchmarks.suite import OURS, Competitor, Record

AIM = 10.0  # times faster than anyone
TARGET = "1e-06"
PEERS = tuple(one for one in COMPETITORS if one.same_model and one.name not in (OURS, ONE_WORKER))


def claims(report: Record) -> list[str]:
    """All claims, as measured."""
    lines = [line for one in PEERS for line in _lead(report.get("instances", []), one)]
    timed = [study_seconds(one) for one in report.get("growth", []) if is_timed(one)]
    return lines + [
        f"{TIMED_SILOS} silos of {TIMED_NODES} nodes: {durations(seconds)} (aim: below {TIMED_LIMIT:g} s)"
        for seconds in timed
    ]


def is_timed(record: Record) -> bool:
    """Whether this is the size that a promise is made about."""
    case = record["case"]
    return (case["axis"], case["n_silos"], case["n_nodes"]) == ("n_silos", TIMED_SILOS, TIMED_NODES)


def study_seconds(record: Record) -> list[float]:
    """The processor seconds of whole studies, from signals to graphs."""
    stages = record["seconds"]
    return [sum(parts) for parts in zip(stages["costs"], stages["setup"], stages["rounds"], strict=True)]


def _lead(records: list[Record], peer: Competitor) -> list[str]:
    ran = [record for record in records if record["solvers"].get(peer.name, {}).get("outcome") in ("ran", "diverged")]
    if not ran:
        return []
    lines = [_range(ran, peer, "seconds", f"{peer.name} / {OURS} to 1e-6")]
    if any(laps_of(record, peer.name, TARGET, "solver_seconds") for record in ran):
        lines.append(_range(ran, peer, "solver_seconds", f"{peer.name}, solver alone / {OURS} to 1e-6"))
    return lines


def _range(records: list[Record], peer: Competitor, field: str, label: str) -> str:
    found = [ratio_of(record, peer, TARGET, field) for record in records]
    ratios = sorted((ratio for ratio in found if ratio), key=lambda ratio: ratio.median)
    if not ratios:
        return f"{label}: never reached"
    never = len(found) - len(ratios)
    missed = f"; not reached on {never} of {len(found)}" if never else ""
    low, high = times_spread(ratios[0]), times_spread(ratios[-1])
    return f"{label}: {low} to {high}{missed} ({_verdict(ratios[0].median)})"


def _verdict(ratio: float) -> str:
    if ratio >= AIM:
        return f"aim of {AIM:g}× met"
    return f"aim of {AIM:g}× missed" + (f": {OURS} is slower" if ratio < 1 else "")
