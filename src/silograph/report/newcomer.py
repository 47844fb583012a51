"""What the page says of a newcomer: how unusual it is, which edges are its own, and whether to trust that."""

from typing import Any

from silograph.runs.reader import RunData
from silograph.runs.record import NewcomerRecord

MEANS = (
    "The distance is that of graphs which halves of its rows give without the consensus, so that few rows alone do not "
    "make it large."
)


def newcomer_of(run: RunData) -> dict[str, Any] | None:
    """What the page's chart needs; nothing where there is nobody to compare with."""
    told = run.record.newcomer
    if told is None or not told.distances:
        return None
    return {"name": run.silos[0].name, "distance": told.distance, "distances": list(told.distances)}


def unusual_says(told: NewcomerRecord) -> tuple[str, ...]:
    """How far it is, among silos that were left out."""
    return (told.says, f"Its distance to the consensus of {len(told.silos)} silos is {told.distance:.3g}. {MEANS}")


def alone_says(told: NewcomerRecord) -> tuple[str, ...]:
    """How many edges it alone has."""
    if told.alone_edges is None:
        return ()
    if told.alone_edges == 0:
        return ("No edge is its alone: each is an edge of the consensus, or of a silo that made it.",)
    edges = "1 edge is" if told.alone_edges == 1 else f"{told.alone_edges} edges are"
    return (
        f"{edges} its alone: neither the consensus nor any silo that made it has them (alone/ in the run's folder).",
    )
