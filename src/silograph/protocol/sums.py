"""The sum of all silos' updates: the only way from an `Update` to its numbers at the coordinator."""

from collections.abc import Sequence

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ProtocolError
from silograph.protocol.messages import Total, Update, parts_of


def add_up(updates: Sequence[Update]) -> Total:
    """The sum. It does not depend on the order of silos: terms are added from the smallest to the largest."""
    if not updates:
        raise ProtocolError("No silo answered. At least one update is needed.")
    first = updates[0]
    form = _form(first)
    for update in updates[1:]:
        if update.header != first.header:
            raise ProtocolError(f"{update.silo}: expected an answer to {first.header}, got one to {update.header}.")
        if _form(update) != form:
            raise ProtocolError(
                f"{update.silo}, round {first.header.round}: expected parts like those of {first.silo}, "
                f"{form}, got {_form(update)}. Do all silos have the same pairs and run one version?"
            )
    names = [update.silo for update in updates]
    if len(set(names)) != len(names):
        raise ProtocolError(f"Expected one answer per silo, got two of {_repeated(names)!r}. Name each silo once.")
    parts = {name: _ordered_sum([parts_of(update)[name] for update in updates]) for name in parts_of(first)}
    reported = {update.silo: update.reported for update in updates if update.reported}
    return Total(header=first.header, n_silos=len(updates), parts=parts, reported=reported)


def _form(update: Update) -> dict[str, tuple[int, ...]]:
    return {name: () if type(part) is float else np.shape(part) for name, part in sorted(parts_of(update).items())}


def _ordered_sum(terms: Sequence[Vector | float]) -> Vector | float:
    if isinstance(terms[0], float):
        return float(sum(sorted(terms)))
    total: Vector = np.sort(np.array(terms), axis=0).sum(axis=0)
    return total


def _repeated(names: Sequence[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
