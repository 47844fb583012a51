"""How a message names a setting: as its reader would write it, in Python, at the command line or in a site's files.

A message that helps says what to write: `setting("drop", ["age"])` is drop=['age'] in Python, --drop age for those who
called a command, and a line of site.toml at a site. Who reads is known where work begins: see `naming`.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Way = Callable[[str, object], str]  # from a setting's name and value, None for no value in particular

SITE_KEYS = ("drop", "key", "header", "keep_rows", "groups", "groups_column")  # of site.toml; else, the study says
JOIN_OPTIONS = ("drop", "key", "header")
OPTIONS = {"masked": "--open-sums"}  # called otherwise than in Python


def as_parameter(name: str, value: object) -> str:
    """In Python: `drop=['age']`."""
    return name if value is None else f"{name}={value!r}"


def as_option(name: str, value: object) -> str:
    """At the command line: `--drop age`, once for each of a list."""
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join(option if one is None or isinstance(one, bool) else f"{option} {_word(one)}" for one in values)


def as_key(name: str, value: object) -> str:
    """In the files that a site goes by: `drop = ["age"] in site.toml`."""
    line = name if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line} in {'site.toml' if name in SITE_KEYS else 'the study: ask the coordinator'}"


def as_join_option(name: str, value: object) -> str:
    """To those who join a federation: an option where `silograph site join` has it."""
    return (as_option if name in JOIN_OPTIONS else as_key)(name, value)


_way: ContextVar[Way] = ContextVar("way", default=as_parameter)


def setting(name: str, value: object = None) -> str:
    """What to call a setting, or one with a value, to whoever reads."""
    return _way.get()(name, value)


def another_place() -> str:
    """What to do where something is in the way of what is to be written."""
    return f"Choose another {setting('out')}, or replace it with {setting('force', True)}."


@contextmanager
def naming(way: Way) -> Iterator[None]:
    """Name settings in this way meanwhile."""
    token = _way.set(way)
    try:
        yield
    finally:
        _way.reset(token)


def _word(value: object) -> str:
    return shlex.quote(str(value))
