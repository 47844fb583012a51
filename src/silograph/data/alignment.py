"""Silos brought into one order of nodes: that of the first, or, where silos may lack some, that of all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from silograph._util.checks import MOST_NAMED, list_names
from silograph._util.naming import setting
from silograph._util.types import IntVector
from silograph.errors import SilosError

NAMED_SO = "rows that are called like the nodes"


def all_nodes(tables: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The nodes that any table has, in the order in which they are first met."""
    return tuple(dict.fromkeys(name for names in dict.fromkeys(map(tuple, tables)) for name in names))


def order_of(
    reference: Sequence[str],
    names: Sequence[str],
    *,
    first: str,
    silo: str,
    missing_nodes: str = "error",
    rows: Callable[[], Sequence[str]] | None = None,
    file: bool = False,
    newcomer: bool = False,
) -> IntVector | None:
    """Which columns of `silo` to take for the nodes in the order of `reference`; nothing if they are in that order.

    The same nodes in another order are fine. An extra node is an error that names it, and so is a missing one, unless
    silos are allowed to lack nodes: then its column is −1. `rows` tells what the rows of the table are called, for an
    error: they may be what its columns should be. Of a `file`, columns can be dropped by name; of a `newcomer`, the
    consensus is as it is.
    """
    if list(names) == list(reference):
        return None
    column = {name: number for number, name in enumerate(names)}
    if len(column) != len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise SilosError(
            f"{silo}: expected each node once, got {list_names(twice)} more than once. Rename or drop some."
        )
    theirs = set(reference)
    missing = [name for name in reference if name not in column] if missing_nodes == "error" else []
    extra = [name for name in names if name not in theirs]
    if missing or extra:
        parts = [f"{what}: {list_names(some)}" for what, some in (("missing", missing), ("extra", extra)) if some]
        turned = None if rows is None else wrong_way_round(reference, names, rows())
        cure = turned or _cure(missing, extra if file else (), allowed=missing_nodes != "error", newcomer=newcomer)
        raise SilosError(
            f"{silo}: expected the nodes of {first} ({len(reference)}), got {len(names)}; {'; '.join(parts)}. {cure}"
        )
    return np.array([column.get(name, -1) for name in reference], dtype=np.int32)


def _cure(missing: Sequence[str], extra: Sequence[str], *, allowed: bool, newcomer: bool) -> str:
    """How silos come to the same nodes. Some columns too many, and none too few, are most likely no nodes."""
    drop = f" ({setting('drop', extra)})" if extra and not missing and len(extra) <= MOST_NAMED else ""
    change = f"ename columns, or drop those that are no nodes{drop}, until they agree"
    allow = setting("missing_nodes", "allow")
    if newcomer:
        lack = f" A newcomer may lack nodes only where the silos of the consensus might: learn that again with {allow}."
        return f"R{change}.{'' if allowed else lack}"
    return f"Every silo needs the same nodes: r{change}{'' if allowed else f'; or let silos lack nodes ({allow})'}."


def wrong_way_round(nodes: Sequence[str], columns: Sequence[str], rows: Sequence[str]) -> str | None:
    """What to tell of a table whose rows, rather than its columns, seem to be the nodes; nothing of any other."""
    named = set(nodes) <= set(rows)
    if not named and (len(rows) != len(nodes) or len(columns) == len(nodes)):
        return None
    what = NAMED_SO if named else f"as many rows as there are nodes ({len(rows)})"
    return f"It seems to lie the wrong way round: it has {what}. Rows are samples, columns are nodes: transpose it."


def check_silo_names(names: Sequence[str]) -> None:
    """Raise unless every silo has a name of its own."""
    if not names:
        raise SilosError("Expected at least one silo, got none.")
    for name, count in Counter(names).items():
        if not name:
            raise SilosError("Expected a name for each silo, got an empty one.")
        if count > 1:
            raise SilosError(f"Expected different names for the silos, got {name!r} twice. Rename one.")
