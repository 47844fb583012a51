"""JSON and TOML by other people's hands: read up to a size, then checked key by key and value by value.

What a stranger sends may be endless, deep, or made to fool the reader of a terminal: every limit here is a defence.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from silograph.errors import ParameterError

T = TypeVar("T")
Homes = Mapping[str, Sequence[str]]  # place → the keys that belong there

LARGEST_WHOLE = 2**53  # the whole numbers up to here are floats too
LONGEST_SHOWN, LONGEST_KEY = 200, 200  # characters
WORDS: dict[Any, tuple[str, str]] = {  # kind → what is expected, and what to do
    bool: ("true or false", "Write true or false, without quotes."),
    int: ("a whole number", "Write one, such as 100."),
    float: ("a finite number", "Write one, such as 0.5."),
    str: ("text", 'Write it in quotes: "…".'),
    Path: ("text", 'Write it in quotes: "…".'),
}

# tomllib takes time and memory with the square of a key's parts: 1 MB of "a.a.a…" would fill a terabyte. So texts in
# quotes are made one letter each, comments none, and what then still has eight points in a row is never parsed.
# Nothing that follows a repeated group must match, so none is tried twice. `*+` of groups fails in Python 3.11.2.
QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5})?' r"|'''(?:[^']|'(?!''))*(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*"?' r"|'[^'\n]*+'?" r"|(?P<comment>\#[^\n]*+)",
    re.DOTALL,
)  # fmt: skip
LONG_KEY = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){8}")


def read_bytes(path: Path, *, most: int, cure: str) -> bytes:
    """The content of a file of at most so many bytes; `cure` says what to do where there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}). {cure}") from error
    if len(data) > most:
        raise ParameterError(f"{path}: is larger than {most} bytes. {cure}")
    return data


def parse_json(data: bytes | str) -> dict[str, Any]:
    """The JSON object in the data; ValueError where there is none."""
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def parse_toml(data: bytes, *, source: str, cure: str = "Correct it.") -> dict[str, Any]:
    """The table that the bytes hold; `source` is what an error calls them."""
    try:
        text = data.decode("utf-8-sig")  # some editors of Windows put a mark in front
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParameterError(f"{source}, line {line}: expected UTF-8 text. Save the file as UTF-8.") from error
    if LONG_KEY.search(QUOTED.sub(lambda found: "" if found["comment"] else "q", text)):
        raise ParameterError(f"{source}: expected keys such as learn.degree, got one of many parts. Correct it.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ParameterError(f"{source}: expected lists of names, got lists in lists in lists. Unpack them.") from error
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{source}: expected TOML, got an error: {clip(str(error))}. {cure}") from error
    except ValueError as error:  # Python converts no more than 4300 digits
        raise ParameterError(f"{source}: expected numbers of some digits, got thousands. Correct them.") from error


@contextmanager
def placing_errors(place: str) -> Iterator[None]:
    """Errors of the block tell the place first."""
    try:
        yield
    except ParameterError as error:
        raise type(error)(f"{place}{error}") from error


def fill(kind: type[T], table: object, *, homes: Homes = MappingProxyType({})) -> T:
    """A dataclass filled from a table, every value of the type that its field declares."""
    if not isinstance(table, dict):
        raise ParameterError(f"expected a table of settings, got {show(table)}. Write one setting per line below it.")
    known = fields(kind)  # type: ignore[arg-type]
    check_keys(table, [field.name for field in known], homes=homes)
    for field in known:
        if field.name not in table and field.default is MISSING and field.default_factory is MISSING:
            cure = next((f"Write {field.name} = … {place}." for place, keys in homes.items() if field.name in keys), "")
            raise ParameterError(f"{field.name}: is missing. {cure or 'Add it.'}")
    hints = get_type_hints(kind)
    return kind(**{key: fit_value(value, hints[key], key) for key, value in table.items()})


def check_keys(table: Mapping[str, Any], known: Sequence[str], *, homes: Homes = MappingProxyType({})) -> None:
    """Raise at a key that is not known; `homes` tells where else one may belong."""
    for key in table:
        if key not in known:
            home = next((f" It belongs {place}." for place, keys in homes.items() if key in keys), "")
            cure = home or _name_near(key, known) or f" Known are {', '.join(known)}. Correct or remove it."
            raise ParameterError(f"{show(key)}: no such key.{cure}")


def fit_value(value: object, hint: Any, where: str) -> Any:
    """The value as its type asks: a whole number becomes a float where one is meant, a list a tuple; true is none."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    listed = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is tuple), None)
    if isinstance(value, str) and value in choices:
        return value
    if type(value) is bool and bool in kinds:
        return value
    if type(value) is int and abs(value) <= LARGEST_WHOLE and (int in kinds or float in kinds):
        return value if int in kinds else float(value)
    if type(value) is float and float in kinds and math.isfinite(value):
        return value
    if isinstance(value, str | Path) and str(value) and (str in kinds or Path in kinds):
        return _encodable(value, where) if str in kinds else Path(_encodable(value, where))
    if listed is not None and isinstance(value, list | tuple):
        entries = enumerate(value, start=1)
        return tuple(_fit_entry(item, listed, f"{where}, entry {number}") for number, item in entries)
    mapped = next((get_args(kind)[1] for kind in kinds if get_origin(kind) is Mapping), None)
    if mapped is not None and isinstance(value, dict):
        return {name: fit_value(item, mapped, f"{where}.{show(name)[1:-1]}") for name, item in value.items()}
    raise ParameterError(f"{where}: {_expected(value, kinds, choices, listed is not None, mapped is not None)}")


def _fit_entry(item: object, hint: Any, where: str) -> Any:
    return item if item == "" and hint is str else fit_value(item, hint, where)  # a text in a list may be empty


def show(value: object) -> str:
    """A stranger's value, short and without effect on a terminal."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else f"a list of {len(value)}"
    if isinstance(value, str):
        return clip(repr(value))
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:  # Python refuses to print the largest ones
        return "a number too large"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def clip(text: str) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:120]} … {text[-60:]}"


def _expected(value: object, kinds: Sequence[Any], choices: Sequence[str], a_list: bool, a_table: bool) -> str:
    words = [WORDS[kind] for kind in kinds if kind in WORDS]
    expected = [what for what, _ in words] + [json.dumps(choice) for choice in choices]
    expected += ["a list"] * a_list + ["a table"] * a_table
    cure = " " + ('Write a list: ["…", "…"], or [] for none.' if a_list else words[0][1] if words else "")
    near = _name_near(value, choices) if isinstance(value, str) else ""
    return f"expected {' or '.join(expected)}, got {show(value)}.{near or cure.rstrip()}"


def _encodable(value: Any, where: str) -> Any:
    try:
        str(value).encode()
    except UnicodeEncodeError as error:
        raise ParameterError(f"{where}: {value!r} has characters that no text file can hold. Rename it.") from error
    return value


def _name_near(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word[:LONGEST_KEY], known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
