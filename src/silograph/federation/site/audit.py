"""The audit log: the requests to this site and its answers, one line each, none of them to be altered unseen.

A line is a JSON object: `sequence`, `time`, the entry's own fields, `previous` and `hash`. `hash` is the SHA-256 of the
line's bytes without `,"hash":"…"`; `previous` is the hash of the entry before, and 64 zeros in the first. So whoever
alters, removes, inserts or moves a line breaks the chain there. Entries cut off at the end show in `audit.head`, which
keeps the number of entries and the last hash.

What this cannot show: someone who may write in this folder can make the whole chain and its head anew. To hold against
that too, keep a copy of `audit.head` elsewhere now and then.

A process that is killed, or a full disk, may leave an incomplete line. It stays; the next entry goes on a new line.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import lock
from silograph.errors import OutputError, ParameterError
from silograph.federation.witness import Witness

Scalar = str | int | float | bool | None
RESERVED_NAMES = ("sequence", "time", "previous", "hash")
LONGEST_TEXT, LONGEST_NAME, MOST_FIELDS = 500, 50, 40
LONGEST_LINE = 1 << 19  # bytes; above what these limits allow, where a character takes at most 12
SHORT_TAIL, LONG_TAIL = 1 << 13, 2 * LONGEST_LINE  # bytes: where the last entry nearly always lies, and surely
HASHED_LINE = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}\n?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Link:
    """An entry's place in the chain; the next one needs it."""

    sequence: int = 0
    hash: str = "0" * 64
    previous: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a check of the log."""

    entries: int  # that were found sound, up to the first problem
    torn: int  # incomplete lines, left by a crash
    problem: str | None  # the first one, with its line; None: the log is sound


class AuditLog:
    """The log of one site. It keeps nothing in memory, so any number of processes may append to the same file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, entry: Mapping[str, Scalar], *, durable: bool = False) -> Witness:
        """Add one entry; its place. It outlasts the process, and a power cut if `durable`: the disk is waited for."""
        fields = {name: _scalar(name, value) for name, value in _check_names(entry).items()}
        try:
            with self._path.open("a+b", buffering=0) as file:
                lock(file)
                return self._append(file, fields, durable)
        except OSError as error:
            raise OutputError(
                f"{self._path}: the entry cannot be written ({error.strerror}). "
                "Free the disk or give the right to write there: this site answers nothing that it cannot write down."
            ) from error

    def _append(self, file: IO[bytes], fields: dict[str, Scalar], durable: bool) -> Witness:
        size = os.fstat(file.fileno()).st_size
        before = _furthest(file, size, _read_head(self._path))
        if before is None:
            raise OSError(None, "no entry in what should be an audit log; keep it as evidence and begin a new one")
        link, line = _make_entry(before, fields)
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            line = b"\n" + line
        _write_all(file, line)
        if durable:
            os.fsync(file.fileno())
        # Not before the entry: a head that is behind after a crash does no harm, one ahead would be a false alarm
        head = {"entries": link.sequence, "hash": link.hash}
        write_bytes(_head_of(self._path), json.dumps(head).encode(), under_lock=True)
        return Witness(link.sequence, link.hash)

    def has(self, witness: Witness) -> bool:
        """Whether the log has this entry. Found by halving: the log may be long, and anybody's number is looked for."""
        try:
            with self._path.open("rb") as file:
                return _find(file, witness.entries) == witness.hash
        except FileNotFoundError:
            return False

    def last_of(self, what: str) -> dict[str, Any] | None:
        """The last entry of a kind, unless it is far back."""
        try:
            with self._path.open("rb") as file:
                tail = os.pread(file.fileno(), LONG_TAIL, max(0, os.fstat(file.fileno()).st_size - LONG_TAIL))
        except OSError:  # there is none, or whoever writes the next entry is told
            return None
        found = (_object(line) for line in reversed(tail.split(b"\n")))
        return next((entry for entry in found if entry is not None and entry.get("what") == what), None)

    def head(self) -> Witness | None:
        """The last entry, if there is any; a power cut does not undo it any more."""
        try:
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
                last = _last(file, os.fstat(file.fileno()).st_size)
        except FileNotFoundError:
            return None
        return None if last is None else Witness(last.sequence, last.hash)

    def search(self, what: str, *, since: int = 0) -> tuple[dict[str, Any] | None, int]:
        """The last entry of a kind that begins at this byte or after it, however far back, and where the log ends."""
        try:
            with self._path.open("rb") as file:
                if (size := os.fstat(file.fileno()).st_size) <= since:
                    return None, size
                with mmap(file.fileno(), size, access=ACCESS_READ) as log:
                    return _search(log, f'"what":"{what}"'.encode(), since), size
        except FileNotFoundError:
            return None, 0


def verify(path: Path) -> Verdict:
    """Follow the chain from the first entry to the last, in constant memory, while others may append."""
    try:
        with path.open("rb") as file:
            lock(file, shared=True)
            head, size = _read_head(path), os.fstat(file.fileno()).st_size
        with path.open("rb") as file:  # without the lock: the log only grows, and this may take long
            return _follow(_lines(file, size), head)
    except FileNotFoundError:
        return _at_the_end(_read_head(path), 0, 0)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}). Give the right to read it.") from error


def entries(path: Path, *, last: int | None = None) -> Iterator[dict[str, Any]]:
    """The entries, or the last of them, oldest first, for display: not checked, and incomplete lines left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if last is None:
            yield from (entry for _, line in _lines(file, size) if (entry := _object(line)) is not None)
            return
        window, found = 0, list[dict[str, Any]]()
        while window < size and len(found) < last:  # a little more of the end each time, until it holds enough
            window = min(size, 2 * window or SHORT_TAIL)
            tail = os.pread(file.fileno(), window, size - window)
            found = [entry for line in tail.split(b"\n") if (entry := _object(line)) is not None]
        yield from found[max(0, len(found) - last) :]


def _check_names(entry: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    if len(entry) > MOST_FIELDS:
        raise ParameterError(f"An entry of the audit log has at most {MOST_FIELDS} fields, got {len(entry)}.")
    for name in entry:
        if name in RESERVED_NAMES or not 0 < len(name) <= LONGEST_NAME:
            raise ParameterError(
                f"Audit log, field {name[:LONGEST_NAME]!r}: expected a name of 1 to {LONGEST_NAME} characters other "
                f"than {', '.join(RESERVED_NAMES)}. Choose another."
            )
    return entry


def _scalar(name: str, value: Scalar) -> Scalar:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))  # JSON has no such numbers
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    raise ParameterError(
        f"Audit log, field {name!r}: expected text, a number of at most 64 bits, True, False or None, got "
        f"{type(value).__name__}. Turn it into text."
    )


def _make_entry(before: _Link, fields: dict[str, Scalar]) -> tuple[_Link, bytes]:
    """The next entry's place in the chain, and its line."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    rest = {"sequence": before.sequence + 1, "time": now, **fields, "previous": before.hash}
    body = json.dumps(rest, separators=(",", ":")).encode()
    digest = sha256(body).hexdigest()
    return _Link(before.sequence + 1, digest, before.hash), body[:-1] + f',"hash":"{digest}"}}\n'.encode()


def _link(line: bytes) -> _Link | None:
    """The entry's place in the chain, if the line is an entry and its hash is right."""
    match = HASHED_LINE.fullmatch(line)
    if match is None or sha256(match[1] + b"}").hexdigest() != match[2].decode():
        return None
    rest = _object(match[1] + b"}") or {}
    sequence, previous = rest.get("sequence"), rest.get("previous")
    if not isinstance(sequence, int) or not isinstance(previous, str):
        return None
    return _Link(sequence, match[2].decode(), previous)


def _furthest(file: IO[bytes], size: int, head: _Link | None) -> _Link | None:
    """The entry to go on from: the last whole one, or the head's where that is gone: the gap stays to be seen."""
    found = _last(file, size)
    if head is not None and (found is None or head.sequence > found.sequence):
        return head
    return _Link() if found is None and size <= LONG_TAIL else found  # the very first entry may have been torn


def _last(file: IO[bytes], size: int) -> _Link | None:
    for window in (SHORT_TAIL, LONG_TAIL):
        tail = os.pread(file.fileno(), window, max(0, size - window))
        for line in reversed(tail.split(b"\n")):
            if (link := _link(line)) is not None:
                return link
    return None


def _find(file: IO[bytes], number: int) -> str | None:
    """The hash of the entry with this number. It begins at `low` or after, and before `high`."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while high - low > SHORT_TAIL:
        middle = (low + high) // 2
        at, link = next(_entries_from(file, middle, high), (high, None))
        if link is None or link.sequence > number:
            high = middle
        else:
            low = at
    return next((link.hash for _, link in _entries_from(file, low, high) if link.sequence == number), None)


def _search(log: mmap, mark: bytes, since: int) -> dict[str, Any] | None:
    """No text of a stranger's can be such a mark: JSON escapes its quotes."""
    end = len(log)
    while (at := log.rfind(mark, since, end)) >= 0:
        begin, stop = log.rfind(b"\n", 0, at) + 1, log.find(b"\n", at)
        line = log[begin : stop if stop >= 0 else len(log)]
        if begin >= since and _link(line) is not None:
            return _object(line)
        end = begin
    return None


def _entries_from(file: IO[bytes], position: int, end: int) -> Iterator[tuple[int, _Link]]:
    """The entries that begin between two positions, each with its own."""
    file.seek(max(position - 1, 0))
    while position and (piece := file.readline(LONGEST_LINE)) and not piece.endswith(b"\n"):
        pass
    while (at := file.tell()) < end and (line := file.readline(LONGEST_LINE)):
        if (link := _link(line)) is not None:
            yield at, link


def _follow(lines: Iterator[tuple[int, bytes]], head: _Link | None) -> Verdict:
    last, torn, in_doubt = _Link(), 0, 0
    for number, line in lines:
        link = _link(line)
        if link is None and _is_json(line):  # what a crash leaves never is
            problem = f"line {number}: altered, or not written by silograph."
            return Verdict(entries=last.sequence, torn=torn, problem=problem)
        if link is None:
            torn, in_doubt = torn + 1, in_doubt or number
            continue
        if (fault := _fault(last, link, head)) is not None:
            problem = f"line {in_doubt or number}: {fault}"
            return Verdict(entries=last.sequence, torn=torn, problem=problem)
        last, in_doubt = link, 0
    return _at_the_end(head, last.sequence, torn)


def _fault(last: _Link, link: _Link, head: _Link | None) -> str | None:
    """The fault of an entry after the one before, if it has one."""
    expected = last.sequence + 1
    if link.sequence > expected:
        return f"expected entry {expected}, found {link.sequence}: entries were removed, altered or moved."
    if link.sequence < expected:
        return f"expected entry {expected}, found {link.sequence}: an entry was inserted here or just before, or moved."
    if link.previous != last.hash:
        return "does not follow from the entry before: one of the two was replaced."
    if head is not None and head.sequence == link.sequence and head.hash != link.hash:
        return f"entry {link.sequence} is not the one that audit.head was written for: it was replaced."
    return None


def _at_the_end(head: _Link | None, found: int, torn: int) -> Verdict:
    problem = None
    if head is not None and head.sequence > found:
        problem = f"entries are missing at the end: audit.head counts {head.sequence}, the log holds {found}."
    elif head is None and found > 1:  # after one entry, a crash may have come before the first head
        problem = "audit.head is missing or damaged, so nobody can tell whether entries are missing at the end."
    return Verdict(entries=found, torn=torn, problem=problem)


def _lines(file: IO[bytes], size: int) -> Iterator[tuple[int, bytes]]:
    """Lines up to `size`, numbered from 1. A longer line than any entry is cut, so that no file fills the memory."""
    number, fresh = 0, True
    while size > 0 and (piece := file.readline(min(size, LONGEST_LINE))):
        size -= len(piece)
        if fresh:
            number += 1
            yield number, piece
        fresh = piece.endswith(b"\n")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        return parse_json(line)
    except ValueError:
        return None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _write_all(file: IO[bytes], data: bytes) -> None:
    while data:  # one call nearly always; a full disk may take a part and then refuse
        data = data[file.write(data) :]


def _head_of(path: Path) -> Path:
    return path.with_suffix(".head")


def _read_head(path: Path) -> _Link | None:
    try:
        head = _object(_head_of(path).read_bytes())
    except FileNotFoundError:
        return None
    if head is None or not isinstance(head.get("entries"), int) or not isinstance(head.get("hash"), str):
        return None
    return _Link(head["entries"], head["hash"])
