"""Messages as bytes: plain data, never code.

    | magic, format, kind, sizes | header (JSON) | numbers |

The header names what follows; the numbers keep their last bit (packing.py). A sum over several silos has more bits than
a float64: of its three limbs of 64 bits, those are sent that do not only go on with the sign, most often two. There is
no checksum: between machines a message travels in a signed envelope, and within one process nothing damages it.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

import numpy as np

from silograph._util.types import Vector
from silograph.errors import ProtocolError
from silograph.protocol.checks import LONGEST_LIST, REPORTABLE
from silograph.protocol.fixed import Limbs, limbs_of, whole_numbers, widen, width_of
from silograph.protocol.messages import Field, Header, Parts, Task, Update, parts_of
from silograph.protocol.packing import NUMBER, Piece, pack, packed_size, unpack
from silograph.protocol.sums import Subtotal

WIRE_FORMAT = 5
TASK, UPDATE, SUBTOTAL = range(3)
KINDS = ("a task", "an update", "a sum")
HEAD = struct.Struct("<4sHBxIQ")  # magic, format, kind, header bytes, payload bytes
MAGIC = b"SLGR"
LONGEST_PART = 2**31  # numbers: 16 GB, far beyond any graph this library learns
MOST_PARTS = 100  # of a message; where nothing is kept of a part, it takes no bytes to claim many
LONGEST_HEADER = 10_000  # bytes of an update's: run, method, step, silo, and the names of all its parts
WIDEST_NUMBER = 24  # bytes: of an exact sum of several silos
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def encode_task(task: Task) -> bytes:
    """The bytes of a task."""
    return _encode(TASK, {"header": asdict(task.header)}, task.parts)


def decode_task(data: bytes, *, n_pairs: int = LONGEST_PART) -> Task:
    """The task in these bytes, none of whose parts is longer than `n_pairs` or a list may be."""
    extra, parts = _decode(TASK, data, max(n_pairs, LONGEST_LIST), MOST_PARTS * LONGEST_PART * NUMBER)
    return Task(header=_header(extra), parts=parts)


def encode_update(update: Update) -> bytes:
    """The bytes of an update."""
    extra = {"header": asdict(update.header), "silo": update.silo, "reported": sorted(update.reported)}
    numbers = {f"reported_{k}": update.reported[name] for k, name in enumerate(sorted(update.reported))}
    return _encode(UPDATE, extra, {**parts_of(update), **numbers})


def encode_subtotal(subtotal: Subtotal) -> bytes:
    """The bytes of a sum over a site's silos, with what is told of all of them together."""
    reported = subtotal.reported.get(subtotal.source, {})
    sums = [limbs_of(part) if isinstance(part, int) else part for part in subtotal.parts.values()]
    widths = [width_of(limbs) for limbs in sums]
    about = {
        "header": asdict(subtotal.header),
        "silo": subtotal.source,
        "n_silos": subtotal.n_silos,
        "reported": {name: number for name, number in reported.items() if isfinite(number)},
        "parts": [[name, -1 if isinstance(part, int) else len(part)] for name, part in subtotal.parts.items()],
        "widths": widths,
    }
    body = [limbs[:, :width].astype("<u8").tobytes() for limbs, width in zip(sums, widths, strict=True)]
    return _join(SUBTOTAL, about, body)


def encode_answer(answer: Update | Subtotal) -> bytes:
    """The bytes of a site's answer."""
    return encode_update(answer) if isinstance(answer, Update) else encode_subtotal(answer)


def decode_answer(data: bytes, *, n_pairs: int = LONGEST_PART, most: int = LONGEST_PART * NUMBER) -> Update | Subtotal:
    """The answer of a site in these bytes: of its one silo, or of several."""
    decode = decode_subtotal if len(data) >= HEAD.size and HEAD.unpack_from(data)[2] == SUBTOTAL else decode_update
    return decode(data, n_pairs=n_pairs, most=most)


def largest_update(fields: Mapping[str, Field], n_pairs: int) -> int:
    """How many bytes an update with these fields can have at most."""
    sizes = {"pairs": n_pairs, "list": LONGEST_LIST}  # all others are one number
    n_numbers = len(REPORTABLE) + sum(sizes.get(field.kind, 1) for field in fields.values())
    return HEAD.size + LONGEST_HEADER + n_numbers * WIDEST_NUMBER


def decode_update(data: bytes, *, n_pairs: int = LONGEST_PART, most: int = LONGEST_PART * NUMBER) -> Update:
    """The update in these bytes, none of whose parts is longer than `n_pairs` or a list may be.

    All parts together, with the zeros that are not sent, take `most` bytes at most.
    """
    extra, parts = _decode(UPDATE, data, max(n_pairs, LONGEST_LIST), most)
    names = extra.get("reported")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProtocolError("message: expected a list of reported names. It was not made by silograph, or was damaged.")
    numbers = [parts.pop(f"reported_{k}", None) for k in range(len(names))]
    if len(set(names)) != len(names) or not all(isinstance(number, float) for number in numbers):
        raise ProtocolError("message: expected one number for each reported name. It was damaged.")
    reported = dict(zip(names, numbers, strict=True))
    return Update(header=_header(extra), silo=_silo(extra), reported=reported, _parts=parts)


def decode_subtotal(data: bytes, *, n_pairs: int = LONGEST_PART, most: int = LONGEST_PART * NUMBER) -> Subtotal:
    """The sum in these bytes, within the same bounds."""
    extra, body = _split(SUBTOTAL, data)
    shapes, widths = _shapes(extra, max(n_pairs, LONGEST_LIST), most), extra.get("widths")
    if not isinstance(widths, list) or len(widths) != len(shapes) or not all(type(width) is int for width in widths):
        raise ProtocolError("message: expected one width for each sum. It was not made by silograph, or was damaged.")
    parts: dict[str, int | Limbs] = {}
    start = 0
    for (name, size, count), width in zip(shapes, widths, strict=True):
        stop = start + abs(size) * width * NUMBER
        if width not in (1, 2, 3) or count is not None or stop > len(body) or name in parts:
            raise ProtocolError(f"message: part {name!r} does not fit. It was damaged.")
        limbs = widen(np.frombuffer(body[start:stop], dtype="<u8").astype(np.uint64).reshape(abs(size), width))
        parts[name] = whole_numbers(limbs)[0] if size == -1 else limbs
        start = stop
    if start != len(body):
        raise ProtocolError("message: holds more numbers than it names. It was damaged.")
    n_silos, reported, source = extra.get("n_silos"), extra.get("reported"), _silo(extra)
    if type(n_silos) is not int or n_silos < 1:
        raise ProtocolError("message: expected how many silos the sum is over. It was not made by silograph.")
    if not isinstance(reported, dict) or not all(type(number) is float for number in reported.values()):
        raise ProtocolError("message: expected one number for each reported name. It was damaged.")
    told = {source: reported} if reported else {}
    return Subtotal(header=_header(extra), source=source, n_silos=n_silos, parts=parts, reported=told)


def _silo(extra: Mapping[str, Any]) -> str:
    silo = extra.get("silo")
    if not isinstance(silo, str):
        raise ProtocolError("message: expected a silo's name. It was not made by silograph, or was damaged.")
    return silo


def _header(extra: Mapping[str, Any]) -> Header:
    parts = extra.get("header")
    kinds = {"run": str, "method": str, "step": str, "round": int}
    if not isinstance(parts, dict) or set(parts) != set(kinds):
        raise ProtocolError("message: expected run, method, step and round. It was not made by silograph.")
    if any(type(parts[name]) is not kind for name, kind in kinds.items()) or parts["round"] < 0:
        raise ProtocolError("message: run, method and step must be text, round a whole number ≥ 0.")
    return Header(**parts)


def _encode(kind: int, extra: Mapping[str, Any], parts: Parts) -> bytes:
    shapes: list[list[Any]] = []
    body: list[Piece] = []
    for name, value in parts.items():
        pieces, count = pack(np.asarray(value, dtype=np.float64))
        shapes.append([name, -1 if np.ndim(value) == 0 else np.size(value), *([] if count is None else [count])])
        body += pieces
    return _join(kind, {**extra, "parts": shapes}, body)


def _join(kind: int, about: Mapping[str, Any], body: Sequence[Piece]) -> bytes:
    header = json.dumps(about, separators=(",", ":")).encode()
    n_bytes = sum(len(piece) for piece in body)
    return b"".join((HEAD.pack(MAGIC, WIRE_FORMAT, kind, len(header), n_bytes), header, *body))  # large: copied once


def _decode(kind: int, data: bytes, largest: int, most: int) -> tuple[dict[str, Any], dict[str, Vector | float]]:
    header, body = _split(kind, data)
    parts: dict[str, Vector | float] = {}
    start = 0
    for name, size, count in _shapes(header, largest, most):
        stop = start + packed_size(abs(size), count)  # −1 is a single number
        if stop > len(body) or name in parts:
            raise ProtocolError(f"message: part {name!r} does not fit. It was damaged.")
        vector = unpack(body[start:stop], abs(size), count)
        parts[name] = float(vector[0]) if size == -1 else vector
        start = stop
    if start != len(body):
        raise ProtocolError("message: holds more numbers than it names. It was damaged.")
    return header, parts


def _shapes(header: Mapping[str, Any], largest: int, most: int) -> list[tuple[str, int, int | None]]:
    """Name and size of each part, and how its numbers are packed."""
    shapes = header.get("parts")
    if not isinstance(shapes, list) or len(shapes) > MOST_PARTS:
        raise ProtocolError(f"message: expected a list of at most {MOST_PARTS} parts. It was not made by silograph.")
    checked = list(_checked_shapes(shapes, largest))
    if sum(abs(size) for _, size, _ in checked) * NUMBER > most:
        raise ProtocolError("message: claims more numbers than any answer to this request can have.")
    return checked


def _split(kind: int, data: bytes) -> tuple[dict[str, Any], memoryview]:
    """The JSON header and the numbers' bytes, once the head is right."""
    if len(data) < HEAD.size:
        raise ProtocolError(f"message: expected at least {HEAD.size} bytes, got {len(data)}.")
    magic, version, its_kind, header_size, n_bytes = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError("message: expected one of silograph's, got something else.")
    if version != WIRE_FORMAT:
        raise ProtocolError(
            f"message: expected format {WIRE_FORMAT}, got {version}. Run the same silograph on both sides."
        )
    if its_kind != kind:
        raise ProtocolError(f"message: expected {KINDS[kind]}, got another kind.")
    expected = HEAD.size + header_size + n_bytes
    if len(data) != expected:
        raise ProtocolError(f"message: expected {expected} bytes, got {len(data)}. It was cut or damaged on its way.")
    try:
        header = json.loads(data[HEAD.size : HEAD.size + header_size])
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no JSON, or a number too long
        raise ProtocolError("message: its header cannot be read. It was not made by silograph.") from error
    if not isinstance(header, dict):
        raise ProtocolError("message: its header cannot be read. It was not made by silograph.")
    return header, memoryview(data)[HEAD.size + header_size :]


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
