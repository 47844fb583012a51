"""What crosses between a silo and the coordinator: a Task down, an Update up, and updates add.

An `Update` does not offer its numbers. Only a `Total`, the sum over silos, does: so a method cannot read one silo's
vector, and adding under a mask is another transport, not another method.

On the wire a message is plain data, never code: a fixed head, a JSON header that names what follows, the numbers to the
last bit (packing.py), and a checksum. What a message must hold is said by the
fields of the method's step and checked where it is made and where it arrives.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from silograph._util.kernel import kernel
from silograph._util.types import Vector
from silograph.errors import ProtocolError
from silograph.protocol.packing import Piece, pack, packed_size, unpack

FORMAT = 2
HEAD = struct.Struct("<4sHBxIQ")  # magic, format, kind, header bytes, payload bytes
CHECKSUM = struct.Struct("<I")
MAGIC = b"SLGR"
LARGEST = 2**31  # numbers in one part: 16 GB, far beyond any graph this library learns
LONGEST_LIST = 1000
MOST_PARTS = 100  # of a message; where nothing is kept of a part, it takes no bytes to claim many
# Beyond these, sums or squares overflow; no data that are accepted lead there, nor steps that are too long
FARTHEST: dict[str, float] = {"pairs": 1e150, "number": 1e300, "list": 1e300}
FLOAT64 = np.dtype(np.float64)
REPORTABLE = {"samples", "edges", "distance", "contribution"}  # what a silo may tell of itself, if it is allowed to
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

Reported = Mapping[str, Mapping[str, float]]  # silo → name → number


@dataclass(frozen=True, slots=True)
class Field:
    """What one named part of a message must be."""

    kind: Literal["pairs", "number", "list"]  # one number per pair, one number, or a few
    nonnegative: bool = False
    one_longer_than: str | None = None  # of an answer's list: a list of the task, than which it has one number more


PAIRS, NUMBER, LIST = Field("pairs"), Field("number"), Field("list")
PAIRS_NONNEGATIVE, NUMBER_NONNEGATIVE = Field("pairs", nonnegative=True), Field("number", nonnegative=True)


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of exchange in a method: what its task and its update hold."""

    down: Mapping[str, Field]
    up: Mapping[str, Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Where a message belongs."""

    run: str
    method: str
    step: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """What the coordinator asks of every silo."""

    header: Header
    parts: Mapping[str, Vector | float]

    def vector(self, name: str) -> Vector:
        """A part that is a vector."""
        return np.asarray(self.parts[name], dtype=np.float64)

    def number(self, name: str) -> float:
        """A part that is one number."""
        return float(self.parts[name])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """What a silo answers. Its numbers are for adding: read the sum, `Total`."""

    header: Header
    silo: str
    reported: Mapping[str, float] = field(default_factory=dict)  # what the run's settings allow to be told singly
    _parts: Mapping[str, Vector | float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Total:
    """The sum of all silos' updates: all that the coordinator's half of a method sees."""

    header: Header
    n_silos: int
    parts: Mapping[str, Vector | float]
    reported: Reported = field(default_factory=dict)

    def vector(self, name: str) -> Vector:
        """The sum of a part that is a vector."""
        return np.asarray(self.parts[name], dtype=np.float64)

    def number(self, name: str) -> float:
        """The sum of a part that is one number."""
        return float(self.parts[name])


def update_of(
    header: Header, silo: str, parts: Mapping[str, Vector | float], *, reported: Mapping[str, float] | None = None
) -> Update:
    """A silo's answer."""
    return Update(header=header, silo=silo, reported=dict(reported or {}), _parts=dict(parts))


def parts_of(update: Update) -> Mapping[str, Vector | float]:
    """An update's numbers, for the silo that made it and wants to write it down."""
    return update._parts


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
    parts = {name: _ordered_sum([update._parts[name] for update in updates]) for name in first._parts}
    reported = {update.silo: update.reported for update in updates if update.reported}
    return Total(header=first.header, n_silos=len(updates), parts=parts, reported=reported)


def _form(update: Update) -> dict[str, tuple[int, ...]]:
    return {name: () if type(part) is float else np.shape(part) for name, part in sorted(update._parts.items())}


def _ordered_sum(terms: Sequence[Vector | float]) -> Vector | float:
    if isinstance(terms[0], float):
        return float(sum(sorted(terms)))
    total: Vector = np.sort(np.array(terms), axis=0).sum(axis=0)
    return total


def _repeated(names: Sequence[str]) -> str:
    return next(name for name in names if names.count(name) > 1)


def check_parts(
    parts: Mapping[str, Vector | float], fields: Mapping[str, Field], *, n_pairs: int, header: Header, source: str
) -> None:
    """Raise unless `parts` are just what `fields` say: names, shapes, float64, finite, signs."""
    if parts.keys() != fields.keys():
        raise ProtocolError(
            f"{_place(source, header)}: expected {sorted(fields)}, got {sorted(parts)}. Do both sides run one version?"
        )
    for name, expected in fields.items():
        complaint = _complaint(parts[name], expected, n_pairs)
        if complaint is not None:
            raise ProtocolError(f"{_place(source, header)}, {name}: {complaint}")


def _place(source: str, header: Header) -> str:
    return f"{source}, round {header.round} ({header.method}, {header.step})"


def _complaint(part: Vector | float, expected: Field, n_pairs: int) -> str | None:
    """What is wrong with a part; nothing if it is as it should be."""
    quick = type(part) is float and expected.kind == "number"  # by far the most
    if quick and abs(float(part)) <= FARTHEST["number"] and not (expected.nonnegative and float(part) < 0):
        return None
    values = np.asarray(part)
    if values.dtype != FLOAT64:
        return f"expected float64, got {values.dtype}."
    if expected.kind == "list" and not (values.ndim == 1 and values.size <= LONGEST_LIST):
        return f"expected at most {LONGEST_LIST} numbers, got shape {values.shape}."
    if expected.kind != "list" and values.shape != ((n_pairs,) if expected.kind == "pairs" else ()):
        return f"expected shape {(n_pairs,) if expected.kind == 'pairs' else ()}, got {values.shape}."
    least, largest = _range(values.ravel())
    if isnan(least):
        return "expected finite numbers, got NaN or infinity."
    if max(-least, largest) > FARTHEST[expected.kind]:
        return f"expected numbers up to {FARTHEST[expected.kind]:g}, got {least:g} to {largest:g}."
    if expected.nonnegative and least < 0:
        return f"expected numbers ≥ 0, got {least:g}."
    return None


@kernel
def _range(values: Vector) -> tuple[float, float]:
    """The least and the largest of the numbers, ∞ and −∞ if there are none; NaN if one is not finite."""
    least, largest = np.inf, -np.inf
    for k in range(values.size):
        if not np.isfinite(values[k]):
            return np.nan, np.nan
        least = min(least, values[k])
        largest = max(largest, values[k])
    return least, largest


def check_update(
    update: Update,
    task: Header,
    fields: Mapping[str, Field],
    *,
    n_pairs: int,
    asked: Mapping[str, Vector | float] = MappingProxyType({}),
) -> None:
    """Raise unless the update answers this task with just what it should hold: the coordinator's check on arrival.

    `asked` are the task's parts, by which the length of some lists is known.
    """
    if update.header != task:
        raise ProtocolError(f"{update.silo}: expected an answer to {task}, got one to {update.header}.")
    check_parts(update._parts, fields, n_pairs=n_pairs, header=task, source=update.silo)
    for name, expected in fields.items():
        due = None if expected.one_longer_than is None or not asked else np.size(asked[expected.one_longer_than]) + 1
        if due is not None and np.size(update._parts[name]) != due:
            raise ProtocolError(f"{_place(update.silo, task)}, {name}: expected {due} numbers, got another number.")
    unknown = update.reported.keys() - REPORTABLE
    if unknown:
        raise ProtocolError(
            f"{update.silo}, round {task.round}: tells {sorted(unknown)} of itself, which no method does."
        )
    negative = [name for name, number in update.reported.items() if number < 0]  # NaN: not known; ∞: fused
    if negative:
        raise ProtocolError(f"{update.silo}, round {task.round}: expected {negative} ≥ 0.")


# --- the wire ---------------------------------------------------------------------------------------------------------


def encode_task(task: Task) -> bytes:
    """The bytes of a task."""
    return _encode(0, {"header": _as_dict(task.header)}, task.parts)


def decode_task(data: bytes, *, n_pairs: int = LARGEST) -> Task:
    """The task in these bytes, none of whose parts is longer than `n_pairs` or a list may be."""
    extra, parts = _decode(0, data, max(n_pairs, LONGEST_LIST))
    return Task(header=_header(extra), parts=parts)


def encode_update(update: Update) -> bytes:
    """The bytes of an update."""
    extra = {"header": _as_dict(update.header), "silo": update.silo, "reported": sorted(update.reported)}
    numbers = {f"reported_{k}": update.reported[name] for k, name in enumerate(sorted(update.reported))}
    return _encode(1, extra, {**update._parts, **numbers})


def decode_update(data: bytes, *, n_pairs: int = LARGEST) -> Update:
    """The update in these bytes, none of whose parts is longer than `n_pairs` or a list may be."""
    extra, parts = _decode(1, data, max(n_pairs, LONGEST_LIST))
    names = extra.get("reported")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProtocolError("message: expected a list of reported names. It was not made by silograph, or was damaged.")
    numbers = [parts.pop(f"reported_{k}", None) for k in range(len(names))]
    if len(set(names)) != len(names) or not all(isinstance(number, float) for number in numbers):
        raise ProtocolError("message: expected one number for each reported name. It was damaged.")
    reported = dict(zip(names, numbers, strict=True))
    silo = extra.get("silo")
    if not isinstance(silo, str):
        raise ProtocolError("message: expected a silo's name. It was not made by silograph, or was damaged.")
    return Update(header=_header(extra), silo=silo, reported=reported, _parts=parts)


def _as_dict(header: Header) -> dict[str, Any]:
    return {"run": header.run, "method": header.method, "step": header.step, "round": header.round}


def _header(extra: Mapping[str, Any]) -> Header:
    parts = extra.get("header")
    kinds = {"run": str, "method": str, "step": str, "round": int}
    if not isinstance(parts, dict) or set(parts) != set(kinds):
        raise ProtocolError("message: expected run, method, step and round. It was not made by silograph.")
    if any(type(parts[name]) is not kind for name, kind in kinds.items()) or parts["round"] < 0:
        raise ProtocolError("message: run, method and step must be text, round a whole number ≥ 0.")
    return Header(**parts)


def _encode(kind: int, extra: Mapping[str, Any], parts: Mapping[str, Vector | float]) -> bytes:
    shapes: list[list[Any]] = []
    body: list[Piece] = []
    for name, value in parts.items():
        pieces, count = pack(np.asarray(value, dtype=np.float64))
        shapes.append([name, -1 if np.ndim(value) == 0 else np.size(value), *([] if count is None else [count])])
        body += pieces
    header = json.dumps({**extra, "parts": shapes}, separators=(",", ":")).encode()
    n_bytes = sum(len(piece) for piece in body)
    pieces = [HEAD.pack(MAGIC, FORMAT, kind, len(header), n_bytes) + header, *body]
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return b"".join((*pieces, CHECKSUM.pack(checksum)))  # large: copied once


def _decode(kind: int, data: bytes, largest: int) -> tuple[dict[str, Any], dict[str, Vector | float]]:
    header, body = _opened(kind, data)
    shapes = header.get("parts")
    if not isinstance(shapes, list) or len(shapes) > MOST_PARTS:
        raise ProtocolError(f"message: expected a list of at most {MOST_PARTS} parts. It was not made by silograph.")
    parts: dict[str, Vector | float] = {}
    start = 0
    for name, size, count in _checked_shapes(shapes, largest):
        stop = start + packed_size(abs(size), count)  # −1 is a single number
        if stop > len(body) or name in parts:
            raise ProtocolError(f"message: part {name!r} does not fit. It was damaged.")
        vector = unpack(body[start:stop], abs(size), count)
        parts[name] = float(vector[0]) if size == -1 else vector
        start = stop
    if start != len(body):
        raise ProtocolError("message: holds more numbers than it names. It was damaged.")
    return header, parts


def _opened(kind: int, data: bytes) -> tuple[dict[str, Any], memoryview]:
    """The JSON header and the numbers' bytes, once head and checksum are right."""
    if len(data) < HEAD.size + CHECKSUM.size:
        raise ProtocolError(f"message: expected at least {HEAD.size + CHECKSUM.size} bytes, got {len(data)}.")
    magic, version, its_kind, header_size, n_bytes = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError("message: expected one of silograph's, got something else.")
    if version != FORMAT:
        raise ProtocolError(f"message: expected format {FORMAT}, got {version}. Run the same silograph on both sides.")
    if its_kind != kind:
        raise ProtocolError(f"message: expected {('a task', 'an update')[kind]}, got another kind.")
    expected = HEAD.size + header_size + n_bytes + CHECKSUM.size
    if len(data) != expected:
        raise ProtocolError(f"message: expected {expected} bytes, got {len(data)}. It was cut or damaged on its way.")
    if CHECKSUM.unpack_from(data, expected - CHECKSUM.size)[0] != zlib.crc32(memoryview(data)[: -CHECKSUM.size]):
        raise ProtocolError("message: the checksum is wrong. It was damaged on its way.")
    try:
        header = json.loads(data[HEAD.size : HEAD.size + header_size])
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no JSON, or a number too long
        raise ProtocolError("message: its header cannot be read. It was not made by silograph.") from error
    if not isinstance(header, dict):
        raise ProtocolError("message: its header cannot be read. It was not made by silograph.")
    return header, memoryview(data)[HEAD.size + header_size : expected - CHECKSUM.size]


def _checked_shapes(shapes: Iterable[Any], largest: int) -> Iterable[tuple[str, int, int | None]]:
    """Name, size and count of each part. No part may be larger than the message is expected to hold."""
    for entry in shapes:
        if not (isinstance(entry, list) and len(entry) in (2, 3) and isinstance(entry[0], str)):
            raise ProtocolError("message: expected a name and a size for each part. It was not made by silograph.")
        name, size, count = entry[0], entry[1], entry[2] if len(entry) == 3 else None
        if type(size) is not int or (count is not None and type(count) is not int):
            raise ProtocolError("message: expected a name and a size for each part. It was not made by silograph.")
        possible = -1 <= size <= largest and (count is None or 0 <= count <= size)
        if not NAME.fullmatch(name) or not possible:
            raise ProtocolError(f"message: part {name[:40]!r} of size {size} is not possible.")
        yield name, size, count
