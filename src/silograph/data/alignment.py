"""Silos that hold the same nodes, perhaps in another order: brought into the order of the first."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from silograph._util.checks import list_names
from silograph.errors import SilosError


def order_of(reference: Sequence[str], names: Sequence[str], *, first: str, silo: str) -> np.ndarray | None:
    """Which columns of `silo` to take for the nodes in the order of `reference`; nothing if they are in that order.

    The same nodes in another order are fine. A missing or an extra node is an error that names them all.
    """
    if list(names) == list(reference):
        return None
    mine, theirs = set(names), set(reference)
    if len(mine) != len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise SilosError(
            f"{silo}: expected each node once, got {list_names(twice)} more than once. Rename or drop some."
        )
    missing = [name for name in reference if name not in mine]
    extra = [name for name in names if name not in theirs]
    if missing or extra:
        parts = [f"{what}: {list_names(some)}" for what, some in (("missing", missing), ("extra", extra)) if some]
        raise SilosError(
            f"{silo}: expected the nodes of {first} ({len(reference)}), got {len(names)}; {'; '.join(parts)}. "
            "Every silo needs the same nodes: rename columns, or drop those that are no nodes, until they agree."
        )
    column = {name: number for number, name in enumerate(names)}
    return np.array([column[name] for name in reference])


def check_silo_names(names: Sequence[str]) -> None:
    """Raise unless every silo has a name of its own."""
    if not names:
        raise SilosError("Expected at least one silo, got none.")
    for name in names:
        if not name:
            raise SilosError("Expected a name for each silo, got an empty one.")
        if list(names).count(name) > 1:
            raise SilosError(f"Expected different names for the silos, got {name!r} twice. Rename one.")
