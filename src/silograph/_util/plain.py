"""Dataclasses as plain data and back: every field there and of its type, and no other.

Plain data are what JSON holds, and arrays. Arrays are passed on as they are, so that who writes them can tell one that
was written before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from silograph.errors import CheckpointError, ParameterError

T = TypeVar("T")

_CALLED: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    tuple: "a list",
    Mapping: "an object",
    np.ndarray: "an array",
}


class PlainDataError(ValueError):
    """What was expected, what came, and under which key."""


def to_plain(value: Any) -> Any:
    """Plain data for a dataclass and all that is in it; refuses at once what could not be restored."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: to_plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [to_plain(part) for part in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value
    if value is None or isinstance(value, str | int | float | np.number | np.bool_):
        return value
    raise ParameterError(
        "A state holds dataclasses, mappings by text, tuples, arrays of float64, numbers, text and None, "
        f"got {f'an array of {value.dtype}' if isinstance(value, np.ndarray) else type(value).__name__}."
    )


def restore(kind: Any, data: Any) -> Any:
    """What a checkpoint kept of a value of this kind, or None; raises CheckpointError unless it fits."""
    try:
        return _value(kind | None, data, "")
    except PlainDataError as error:
        raise CheckpointError(
            f"What was kept is of another version of silograph ({error}). Start the run anew."
        ) from error


def from_plain(kind: type[T], data: Any, *, where: str = "") -> T:
    """The dataclass that `data` describes; raises PlainDataError, which names the key, unless it fits."""
    if not isinstance(data, dict):
        raise PlainDataError(f"{where or 'the whole'}: expected an object, got {_shown(data)}")
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    for name in [*known, *data]:
        if (name in known) != (name in data):
            expected = "is missing" if name in known else "is not known"
            raise PlainDataError(f"{_key(where, name)}: {expected}")
    return kind(**{name: _value(hint, data[name], _key(where, name)) for name, hint in known.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _any_value(hint, value, where)
    if is_dataclass(hint) and not isinstance(value, hint):  # type: ignore[arg-type]
        return from_plain(hint, value, where=where)  # type: ignore[arg-type]
    if origin in (tuple, Sequence) and isinstance(value, list) and inner[1:] in ((), (...,)):
        return tuple(_value(inner[0], one, f"{where}[{number}]") for number, one in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {name: _value(inner[1], one, _key(where, name)) for name, one in value.items()}
    if (
        hint is Any
        or isinstance(hint, TypeVar)
        or (origin is Literal and value in inner)
        or (hint is float and type(value) is int)
    ):
        return value
    if isinstance(origin or hint, type) and type(value) is (origin or hint):  # True is no number
        return value
    expected = (
        {tuple: "a list", Mapping: "an object", np.ndarray: "an array"}.get(origin)
        or _CALLED.get(hint)
        or " or ".join(map(repr, inner))
    )
    raise PlainDataError(f"{where}: expected {expected}, got {_shown(value)}")


def _any_value(hint: Any, value: Any, where: str) -> Any:
    """A value of one of several kinds: the first that it fits, or the error of the first."""
    kinds = get_args(hint)
    if value is None and NoneType in kinds:
        return None
    errors = []
    for kind in (one for one in kinds if one is not NoneType):
        try:
            return _value(kind, value, where)
        except PlainDataError as error:
            errors.append(error)
    raise errors[0]


def _key(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
