"""Checks of what a message holds: names, shapes, float64, finite, signs.

Each side checks once: the silo what it is asked and what it answers, the coordinator what arrives.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import isnan, sqrt

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.errors import ProtocolError
from silograph.graph.pairs import Pairs
from silograph.protocol.fixed import LARGEST_TERM
from silograph.protocol.messages import HAS, Field, Header, Parts, Task, Total, Update, parts_of
from silograph.protocol.sums import Subtotal, open_parts
from silograph.protocol.units import LARGEST_COST, Units

LONGEST_LIST = 1000
# Of what is sent down and not added up: beyond these, squares overflow; no data that are accepted lead there
FARTHEST: dict[str, float] = {"pairs": 1e150, "number": 1e300, "list": 1e300, "flag": 1.0}
SLACK = 1e-6  # relative, for rounding where a bound is met
FAR_OFF = "If its signals are in other units than the others', express them alike, or standardize."
FLOAT64 = np.dtype(np.float64)
REPORTABLE = {"samples", "scale", "edges", "distance", "contribution"}  # what a silo may tell of itself, if allowed to
REPORTABLE_TOGETHER = {"samples", "scale"}  # and what a site may tell of several


def check_parts(
    parts: Parts,
    fields: Mapping[str, Field],
    *,
    pairs: Pairs,
    header: Header,
    source: str,
    units: Units | None = None,
    n_silos: int = 1,
    noise: float = 0.0,
) -> None:
    """Raise unless `parts` are just what `fields` say: names, shapes, float64, finite, signs.

    With `units`, they are terms of a sum, or the sum of so many terms: their sizes, too. By `noise` they may be off.
    """
    _check_names(parts, fields, header, source)
    n_nodes, n_pairs = pairs.n_nodes, pairs.size
    for name, expected in fields.items():
        most = FARTHEST[expected.kind] if units is None else n_silos * _largest(expected, n_nodes, n_pairs, units)
        off = noise if expected.most == "cost" else 0.0
        part = parts[name]
        if type(part) is float and expected.kind == "number" and (0 if expected.nonnegative else -most) <= part <= most:
            continue  # by far the most
        complaint = _complaint(part, expected, n_pairs, most + off, n_silos, floor=-off)
        if complaint is not None:
            raise ProtocolError(f"{_place(source, header)}, {name}: {complaint}")


def _check_names(parts: Mapping[str, object], fields: Mapping[str, Field], header: Header, source: str) -> None:
    if parts.keys() != fields.keys():
        raise ProtocolError(
            f"{_place(source, header)}: expected {sorted(fields)}, got {sorted(parts)}. Do both sides run one version?"
        )


def _place(source: str, header: Header) -> str:
    return f"{source}, round {header.round} ({header.method}, {header.step})"


@lru_cache(maxsize=256)
def _largest(expected: Field, n_nodes: int, n_pairs: int, units: Units) -> float:
    """The largest magnitude that a term of this field may have: what the model says, and what sums have room for."""
    unit = 2.0 ** units.exponents[expected.unit]
    room = LARGEST_TERM * unit * (1 - 2**-53)
    match expected.most:
        case None:
            return room
        case "degree":
            return min(room, n_nodes - 1)
        case "pairs":
            return min(room, n_pairs)
        case "force":
            return min(room, units.rho * (1 + SLACK))
        case "cost":
            return min(units.largest_cost * (1 + SLACK), unit * LARGEST_COST)
        case number:
            return number


def _complaint(
    part: Vector | float, expected: Field, n_pairs: int, most: float, n_silos: int, *, floor: float
) -> str | None:
    """What is wrong with a part; nothing if it is as it should be. What is not negative is `floor` or more."""
    values = np.asarray(part)
    if values.dtype != FLOAT64:
        return f"expected float64, got {values.dtype}."
    if expected.kind == "list" and not (values.ndim == 1 and values.size <= LONGEST_LIST):
        return f"expected at most {LONGEST_LIST} numbers, got shape {values.shape}."
    if expected.kind != "list" and values.shape != ((n_pairs,) if expected.kind == "pairs" else ()):
        return f"expected shape {(n_pairs,) if expected.kind == 'pairs' else ()}, got {values.shape}."
    least, largest, square = _range(values.ravel())
    if isnan(least):
        return "expected finite numbers, got NaN or infinity."
    if expected.kind == "flag" and not (0 <= least <= n_silos and least == round(least)):
        return f"expected {'0 or 1' if n_silos == 1 else f'a whole number from 0 to {n_silos}'}, got {least:g}."
    if expected is HAS and (values != np.round(values)).any():
        return "expected whole numbers, got some between."
    if max(-least, largest) > most:
        return f"expected numbers up to {most:g}, got {least:g} to {largest:g}. {FAR_OFF}"
    if expected.most == "force" and sqrt(square) > most:
        return f"expected a force of at most {most:g} in all, got {sqrt(square):g}."
    if expected.nonnegative and least < floor:
        return f"expected numbers ≥ 0, got {least:g}."
    return None


@kernel
def _range(values: Vector) -> tuple[float, float, float]:
    """The least and largest of the numbers (∞ and −∞ if there are none), and Σ of squares; NaN if one is not finite."""
    least, largest, square = np.inf, -np.inf, 0.0
    for k in range(values.size):
        if not np.isfinite(values[k]):
            return np.nan, np.nan, np.nan
        least = min(least, values[k])
        largest = max(largest, values[k])
        square += values[k] * values[k]
    return least, largest, square


def check_update(update: Update, task: Task, fields: Mapping[str, Field], *, pairs: Pairs, units: Units | None) -> None:
    """Raise unless the update answers this task, with just what its step calls for, and with sizes that can be."""
    source = update.silo
    _check_header(update.header, task, source)
    parts = parts_of(update)
    check_parts(parts, fields, pairs=pairs, header=task.header, source=source, units=units)
    _check_lengths(parts, task, fields, source)
    _check_reported(update.reported, REPORTABLE, task, source)


def check_subtotal(subtotal: Subtotal, task: Task, fields: Mapping[str, Field], *, pairs: Pairs, units: Units) -> None:
    """The same of the sum over a site's silos: no number is larger than so many terms can make it."""
    source = subtotal.source
    _check_header(subtotal.header, task, source)
    _check_names(subtotal.parts, fields, task.header, source)
    try:
        parts = open_parts(
            subtotal.parts, fields, units
        )  # rounding keeps the order: what exceeds a bound does so still
    except OverflowError as error:
        raise ProtocolError(f"{_place(source, task.header)}: has numbers beyond any float64.") from error
    check_parts(parts, fields, pairs=pairs, header=task.header, source=source, units=units, n_silos=subtotal.n_silos)
    _check_lengths(parts, task, fields, source)
    if subtotal.reported.keys() - {source}:
        raise ProtocolError(f"{source}, round {task.header.round}: tells of silos by name, which no site does.")
    _check_reported(subtotal.reported.get(source, {}), REPORTABLE_TOGETHER, task, source)


def check_masked(subtotal: Subtotal, task: Task, fields: Mapping[str, Field], *, pairs: Pairs) -> None:
    """What can be checked of a masked sum: that it answers this task, in this form, and tells nothing beside."""
    source = subtotal.source
    _check_header(subtotal.header, task, source)
    _check_names(subtotal.parts, fields, task.header, source)
    for name, expected in fields.items():
        part, due = subtotal.parts[name], pairs.size if expected.kind == "pairs" else None
        if due != (None if isinstance(part, int) else len(part)):
            raise ProtocolError(f"{_place(source, task.header)}, {name}: expected {due or 1} numbers, got others.")
    if subtotal.reported:
        raise ProtocolError(f"{_place(source, task.header)}: tells numbers beside the masked sum, which no site does.")


def check_opened(total: Total, fields: Mapping[str, Field], *, pairs: Pairs, units: Units, noise: float) -> None:
    """The sum of masked sums must be one that so many silos can have: masks that do not cancel leave random numbers."""
    try:
        check_parts(
            total.parts,
            fields,
            pairs=pairs,
            header=total.header,
            source="the sum",
            units=units,
            n_silos=total.n_silos,
            noise=noise,
        )
    except ProtocolError as error:
        raise ProtocolError(
            f"The sites' masks do not cancel: {error} Sites were told different rosters, keys or tasks, or one of them "
            "lied; nobody can say which. Start a new run; if that ends alike, ask the sites for their logs."
        ) from error


def _check_header(header: Header, task: Task, source: str) -> None:
    if header != task.header:
        raise ProtocolError(f"{source}: expected an answer to {task.header}, got one to {header}.")


def _check_lengths(parts: Parts, task: Task, fields: Mapping[str, Field], source: str) -> None:
    for name, expected in fields.items():
        due = None if expected.one_longer_than is None else np.size(task.parts[expected.one_longer_than]) + 1
        if due is not None and np.size(parts[name]) != due:
            place = f"{source}, round {task.header.round}"
            raise ProtocolError(f"{place}, {name}: expected {due} numbers, got {np.size(parts[name])}.")


def _check_reported(reported: Mapping[str, float], allowed: set[str], task: Task, source: str) -> None:
    place = f"{source}, round {task.header.round}"
    if unknown := reported.keys() - allowed:
        raise ProtocolError(f"{place}: tells {sorted(unknown)} of itself, which no method does.")
    negative = [name for name, number in reported.items() if number < 0]  # NaN: not known; ∞: fused
    if negative:
        raise ProtocolError(f"{place}: expected {negative} ≥ 0.")
