"""The pairs that a user allows or forbids, by the names or the numbers of nodes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from silograph._util.checks import list_names
from silograph.errors import PairsError
from silograph.graph.pairs import Pairs


def choose_pairs(
    names: Sequence[str],
    *,
    allowed: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    may_isolate: bool = False,
    source: str | None = None,
) -> Pairs:
    """All pairs of the named nodes; or only the allowed ones; or all but the forbidden ones.

    Both lists are rows of two node names or of two node numbers (positions). Unless nodes may be isolated, each needs a
    pair. `source` is what an error calls the list.
    """
    if allowed is not None and forbidden is not None:
        raise PairsError("pairs: allowed and forbidden contradict each other. Give one of them.")
    if allowed is not None:
        pairs = Pairs.listed(len(names), _numbers(names, allowed, source or "allowed pairs"))
    elif forbidden is not None:
        pairs = Pairs.all_but(len(names), _numbers(names, forbidden, source or "forbidden pairs"))
    else:
        pairs = Pairs.all(len(names))
    isolated = pairs.isolated()
    if isolated.size and not may_isolate:
        raise PairsError(
            f"pairs: no allowed pair touches {list_names([names[node] for node in isolated])}, "
            "but every node needs an edge when zeta is 0. Allow it one, drop the node, or set zeta > 0."
        )
    return pairs


def _numbers(names: Sequence[str], pairs: ArrayLike, source: str) -> np.ndarray:
    """Pairs of node names or numbers as an (n, 2) array of numbers."""
    table = np.asarray(pairs)
    if table.size == 0:
        raise PairsError(
            f"{source}: expected at least one pair, got none. Leave the list out if there is no such pair."
        )
    if table.dtype.kind not in "UO":
        _check_unambiguous(names, source)
        return table
    if table.ndim != 2 or table.shape[1] != 2:
        raise PairsError(f"{source}: expected two node names per row, got shape {table.shape}.")
    number = {name: k for k, name in enumerate(names)}
    for line, (left, right) in enumerate(table.tolist(), start=1):
        for name in (left, right):
            if name not in number:
                raise PairsError(
                    f"{source}, pair {line}: expected the name of a node, got {name!r}. "
                    f"Nodes are {list_names(names)}; correct the name or drop the pair."
                )
        if left == right:
            raise PairsError(f"{source}, pair {line}: a node cannot be paired with itself ({left!r}). Drop the pair.")
    return np.array([[number[left], number[right]] for left, right in table.tolist()], dtype=np.int64)


def _check_unambiguous(names: Sequence[str], source: str) -> None:
    """Node numbers are positions; where names are other numbers, nobody can tell which was meant."""
    if all(name.isdecimal() for name in names) and any(int(name) != node for node, name in enumerate(names)):
        raise PairsError(
            f"{source}: the nodes are called {list_names(names)}, so that numbers could be names or positions. "
            "Give names, as strings."
        )
