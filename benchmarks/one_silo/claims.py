"""What the measurements say in one line: how far ahead of the best first-order method, and where behind anyone."""

from __future__ import annotations

from typing import Any

from benchmarks.catalogue import COMPETITORS, OURS

Record = dict[str, Any]

CLAIMED_SIZES = (500, 1000)
TARGETS = ("0.0001", "1e-08")


def claims(records: list[Record]) -> str:
    """The claims as measured, ranges being over the instances of one size."""
    first_order = {competitor.name for competitor in COMPETITORS if competitor.first_order}
    ahead = ", ".join(f"at d={d}: {_lead(records, d, first_order)}" for d in CLAIMED_SIZES)
    behind = "; ".join(_behind(records)) or "none"
    return f"best first-order / {OURS} to 1e-8 {ahead}; slower than a peer at any d: {behind}"


def published_claim(records: list[Record]) -> str:
    """The lead over first-order methods in the form their authors published."""
    published = {competitor.name for competitor in COMPETITORS if competitor.first_order and competitor.published}
    ahead = ", ".join(f"at d={d}: {_lead(records, d, published)}" for d in CLAIMED_SIZES)
    return f"best published first-order / {OURS} to 1e-8 {ahead}"


def seconds_of(record: Record, name: str, target: str) -> float | None:
    """The time to the target; None where it was not reached."""
    result = record["solvers"].get(name)
    return None if result is None else result["seconds"].get(target)


def _lead(records: list[Record], n_nodes: int, names: set[str]) -> str:
    ratios = []
    for record in records:
        ours = seconds_of(record, OURS, "1e-08")
        theirs = [seconds_of(record, name, "1e-08") for name in names]
        reached = [seconds for seconds in theirs if seconds is not None]
        if record["case"]["n_nodes"] == n_nodes and ours and reached:
            ratios.append(min(reached) / ours)
        elif record["case"]["n_nodes"] == n_nodes and ours:
            ratios.append(float("inf"))
    if not ratios:
        return "not measured"
    low, high = _times(min(ratios)), _times(max(ratios))
    return low if low == high else f"{low} to {high}"


def _times(ratio: float) -> str:
    if ratio == float("inf"):
        return "∞ (not reached in time)"
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:.0f}×"


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
                by = f"{ours / faster[best]:.1f}×" if ours else "not reached"
                label = f"{case['dataset']} k={case['degree']} d={case['n_nodes']}"
                found.append(f"{label} to {float(target):.0e} ({best}, {by})")
    return found
