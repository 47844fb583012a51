"""Frozen dataclasses as plain data and back: how states are written down, whatever method they belong to.

A tree has dictionaries with text as keys, lists, arrays, numbers, text, truth values and None. Arrays are passed on as
they are, so that who writes a tree can tell one that it has written before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from silograph.errors import CheckpointError


def to_tree(value: Any) -> Any:
    """Plain data for a dataclass and all that is in it."""
    if is_dataclass(value):
        return {field.name: to_tree(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_tree(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_tree(part) for part in value]
    return value


def from_tree(kind: Any, tree: Any) -> Any:
    """The value of this kind: a dataclass, a tuple, a mapping, one of these or None, or what needs no change."""
    if tree is None or (isinstance(kind, type) and is_dataclass(kind) and isinstance(tree, kind)):
        return tree
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        kind = kinds[0] if len(kinds) == 1 else object  # of several, all are plain
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and is_dataclass(origin):
        hints = _hints(origin)
        if not isinstance(tree, dict) or set(tree) != set(hints):
            raise CheckpointError(f"What was kept of {origin.__name__} is of another version. Start the run anew.")
        return origin(**{name: from_tree(hint, tree[name]) for name, hint in hints.items()})
    if origin is tuple:
        return tuple(from_tree(get_args(kind)[0], part) for part in tree)
    if origin is Mapping:
        return {name: from_tree(get_args(kind)[1], part) for name, part in tree.items()}
    return tree


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
