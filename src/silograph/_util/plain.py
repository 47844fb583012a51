"""Dataclasses from plain data, as JSON holds them: every field there and of its type, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_CALLED = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class PlainDataError(ValueError):
    """What was expected, what came, and under which key."""


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
        options = [option for option in inner if option is not NoneType]
        if value is None and len(options) < len(inner):
            return None
        hint, origin, inner = options[0], get_origin(options[0]), get_args(options[0])
    if is_dataclass(hint):
        return from_plain(hint, value, where=where)  # type: ignore[arg-type]
    if origin is tuple and isinstance(value, list):
        return tuple(_value(inner[0], one, f"{where}[{number}]") for number, one in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {name: _value(inner[1], one, _key(where, name)) for name, one in value.items()}
    if hint is Any or (origin is Literal and value in inner) or (hint is float and type(value) is int):
        return value
    if isinstance(hint, type) and type(value) is hint:  # True is no number
        return value
    expected = {tuple: "a list", Mapping: "an object"}.get(origin) or _CALLED.get(hint) or " or ".join(map(repr, inner))
    raise PlainDataError(f"{where}: expected {expected}, got {_shown(value)}")


def _key(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
