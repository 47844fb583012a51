"""The sum of all silos' updates: the only way from an `Update` to its numbers at the coordinator.

Sums are exact (fixed.py): the same bits whatever the order of silos and however they are grouped. A `Subtotal` is the
sum over some silos, such as the patients of one site; subtotals add up to the same `Total` as the updates themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ProtocolError
from silograph.protocol.fixed import (
    MOST_TERMS,
    Limbs,
    add_limbs,
    add_vector,
    fixed_to_number,
    in_ring,
    number_to_fixed,
    sum_vectors,
    vector_of,
    zeros,
)
from silograph.protocol.messages import Field, Header, Parts, Reported, Total, Update, parts_of
from silograph.protocol.units import Units


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subtotal:
    """The exact sum of some silos' updates. It does not name them: a site's patients are its own affair."""

    header: Header
    source: str  # whose silos they are: the site
    n_silos: int
    parts: Mapping[str, int | Limbs]
    reported: Reported


def add_up(updates: Sequence[Update], fields: Mapping[str, Field], units: Units) -> Total:
    """The sum over all silos. Updates must have been checked: what is too large for the ring would wrap.

    As `add_some` and `open_total`, without limbs for all numbers at once, which take three times as much as a term.
    """
    first = _check_updates(updates)
    return Total(
        header=first.header,
        n_silos=len(updates),
        parts={name: _total_part(name, updates, fields[name], units) for name in parts_of(first)},
        reported=_reported(updates),
    )


def add_answers(answers: Sequence[Update | Subtotal], fields: Mapping[str, Field], units: Units) -> Total:
    """The sum over sites, of which each has answered for its one silo or for several."""
    sums = [answer for answer in answers if isinstance(answer, Subtotal)]
    updates = [answer for answer in answers if isinstance(answer, Update)]  # together: as a sum, each takes three times
    if not sums:
        return add_up(updates, fields, units)
    if updates:
        sums.append(add_some(updates, fields, units, source="sites with one silo"))
    return open_total(combine(sums), fields, units)


def add_some(updates: Sequence[Update], fields: Mapping[str, Field], units: Units, *, source: str) -> Subtotal:
    """The sum over some silos."""
    first = _check_updates(updates)
    return Subtotal(
        header=first.header,
        source=source,
        n_silos=len(updates),
        parts={name: _add_part(name, updates, fields[name], units) for name in parts_of(first)},
        reported=_reported(updates),
    )


def combine(subtotals: Sequence[Subtotal]) -> Subtotal:
    """The sum over the silos of all of them."""
    first = subtotals[0]
    if len(subtotals) == 1:
        return first
    parts = {name: np.copy(part) if isinstance(part, np.ndarray) else part for name, part in first.parts.items()}
    for other in subtotals[1:]:
        if other.header != first.header or other.parts.keys() != parts.keys():
            raise ProtocolError(f"{other.source}: expected sums of {first.header}, got {other.header}.")
        for name, part in other.parts.items():
            mine = parts[name]
            if isinstance(mine, np.ndarray) and isinstance(part, np.ndarray):
                add_limbs(mine, part)
            elif isinstance(mine, int) and isinstance(part, int):
                parts[name] = in_ring(mine + part)  # masked numbers go round
    _check_distinct([subtotal.source for subtotal in subtotals])
    reported = {silo: numbers for subtotal in subtotals for silo, numbers in subtotal.reported.items()}
    n_silos = _check_number(sum(subtotal.n_silos for subtotal in subtotals))
    return Subtotal(header=first.header, source="all", n_silos=n_silos, parts=parts, reported=reported)


def open_total(subtotal: Subtotal, fields: Mapping[str, Field], units: Units) -> Total:
    """The sum as numbers, each rounded once."""
    parts = open_parts(subtotal.parts, fields, units)
    return Total(header=subtotal.header, n_silos=subtotal.n_silos, parts=parts, reported=subtotal.reported)


def open_parts(
    parts: Mapping[str, int | Limbs], fields: Mapping[str, Field], units: Units
) -> dict[str, Vector | float]:
    """Exact sums as numbers."""
    opened: dict[str, Vector | float] = {}
    for name, part in parts.items():
        unit, rounding = units.exponents[fields[name].unit], fields[name].rounding
        opened[name] = (
            fixed_to_number(part, unit, rounding) if isinstance(part, int) else vector_of(part, unit, rounding)
        )
    return opened


def _add_part(name: str, updates: Sequence[Update], field: Field, units: Units) -> int | Limbs:
    unit, terms = units.exponents[field.unit], [parts_of(update)[name] for update in updates]
    if field.kind in ("number", "flag"):
        return sum(number_to_fixed(float(term), unit, field.rounding) for term in terms)
    total = zeros(np.size(terms[0]))
    for term in terms:
        add_vector(total, np.asarray(term), unit, field.rounding)
    return total


def _total_part(name: str, updates: Sequence[Update], field: Field, units: Units) -> Vector | float:
    if field.kind in ("number", "flag"):
        whole = _add_part(name, updates, field, units)
        assert isinstance(whole, int)
        return fixed_to_number(whole, units.exponents[field.unit], field.rounding)
    terms = [np.asarray(parts_of(update)[name]) for update in updates]
    return sum_vectors(terms, units.exponents[field.unit], field.rounding)


def _reported(updates: Sequence[Update]) -> Reported:
    return {update.silo: update.reported for update in updates if update.reported}


def _check_updates(updates: Sequence[Update]) -> Update:
    """The first of them, once all are of one task and one form, each of another silo."""
    if not updates:
        raise ProtocolError("No silo answered. At least one update is needed.")
    for update in updates[1:]:
        _check_alike(updates[0], update)
    _check_distinct([update.silo for update in updates])
    _check_number(len(updates))
    return updates[0]


def _check_alike(first: Update, update: Update) -> None:
    if update.header != first.header:
        raise ProtocolError(f"{update.silo}: expected an answer to {first.header}, got one to {update.header}.")
    if not _have_one_form(parts_of(first), parts_of(update)):
        raise ProtocolError(
            f"{update.silo}, round {first.header.round}: expected parts like those of {first.silo}, "
            f"{_form(first)}, got {_form(update)}. Do all silos have the same pairs and run one version?"
        )


def _have_one_form(mine: Parts, theirs: Parts) -> bool:
    if mine.keys() != theirs.keys():
        return False
    for name, part in mine.items():
        other = theirs[name]
        if isinstance(part, float) or isinstance(other, float):
            if not (isinstance(part, float) and isinstance(other, float)):
                return False
        elif part.shape != other.shape:
            return False
    return True


def _form(update: Update) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(part) for name, part in sorted(parts_of(update).items())}


def _check_number(n_silos: int) -> int:
    if n_silos > MOST_TERMS:
        raise ProtocolError(f"Expected at most {MOST_TERMS} silos, which a sum has room for, got {n_silos}.")
    return n_silos


def _check_distinct(names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProtocolError(f"Expected one answer per silo, got two of {twice!r}. Name each silo once.")
