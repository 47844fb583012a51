"""The history of a run, in a SQLite file: rounds, sites and events, for people and screens that look on.

One process writes, any number read meanwhile, and the writer may be killed at any moment: a row is there whole or not
at all (write-ahead log). A power cut may cost the last rows, never the file: results rest on the checkpoint, not on
this. Readers sit on the writer's machine, as the log needs memory that both share.
"""

import json
import math
import sqlite3
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from silograph._util.files import writing
from silograph.errors import CheckpointError, OutputError, ParameterError

HISTORY_FORMAT = 1
LOCK_SECONDS = 10.0  # to wait for another process's lock, each of which lasts milliseconds
LONGEST_TEXT = 2000  # characters of what a site sent
EventKind = Literal[
    "rejected", "refused", "missing", "lost", "waiting", "note", "compiling", "left-out", "new-keys", "started",
    "resumed", "stopped", "finished",
]  # fmt: skip

SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS rounds(
    stage TEXT NOT NULL, round INTEGER NOT NULL, finished_at REAL NOT NULL, seconds REAL, gap REAL, objective REAL,
    silos INTEGER, bytes_down INTEGER NOT NULL, bytes_up INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (stage, round));
CREATE TABLE IF NOT EXISTS sites(name TEXT PRIMARY KEY, last_seen REAL, state TEXT NOT NULL, version TEXT, note TEXT);
CREATE TABLE IF NOT EXISTS events(
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, site TEXT, stage TEXT, round INTEGER, kind TEXT NOT NULL,
    reason TEXT, file TEXT);
PRAGMA user_version = {HISTORY_FORMAT};
COMMIT;
"""
ADD_ROUND = """
INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (stage, round) DO UPDATE SET
    finished_at = excluded.finished_at, seconds = excluded.seconds, gap = excluded.gap, objective = excluded.objective,
    silos = excluded.silos, bytes_down = excluded.bytes_down, bytes_up = excluded.bytes_up, record = excluded.record
"""
SEE_SITE = """
INSERT INTO sites VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    last_seen = coalesce(excluded.last_seen, last_seen), state = excluded.state,
    version = coalesce(excluded.version, version), note = excluded.note
"""
ADD_EVENT = "INSERT INTO events(at, site, stage, round, kind, reason, file) VALUES (?, ?, ?, ?, ?, ?, ?)"
ROUNDS = "SELECT stage, round, finished_at, seconds, silos, bytes_down, bytes_up, record FROM rounds ORDER BY rowid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round. Numbers that are not finite are as the record has them, though SQL sees NULL."""

    stage: str
    round: int
    finished_at: float  # seconds since 1970, as all times here
    seconds: float | None
    gap: float | None  # None: the method gives none in this round
    objective: float | None
    silos: int | None
    bytes_down: int
    bytes_up: int
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site as it was last heard of."""

    name: str
    last_seen: float | None  # None: never
    state: str
    version: str | None
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a person may want to know of."""

    id: int
    at: float
    site: str | None
    stage: str | None
    round: int | None
    kind: EventKind
    reason: str | None
    file: str | None


class History:
    """The history of one run: `History(path)` writes and reads, `History.open_read(path)` only reads.

    One writer serves all threads of its process. Readers see what was written before they asked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = _open_writer(path)

    @classmethod
    def open_read(cls, path: Path) -> "History":
        """A history to look at. While there is no file yet, it is empty."""
        history = cls.__new__(cls)
        history._path, history._lock, history._writer = path, threading.Lock(), None
        return history

    def add_round(
        self, stage: str, record: Mapping[str, object], *, seconds: float, bytes_down: int, bytes_up: int
    ) -> None:
        """Write down a round, or write it down again: after a crash the last one is done twice."""
        numbers = [_finite(seconds), _finite(record.get("gap")), _finite(record.get("objective"))]
        silos = None if record.get("silos") is None else int(record["silos"])  # type: ignore[call-overload]
        number = int(record["round"])  # type: ignore[call-overload]
        rest = [silos, int(bytes_down), int(bytes_up), _json(dict(record))]
        self._write(ADD_ROUND, _text(stage), number, time.time(), *numbers, *rest)

    def see_site(
        self, name: str, *, state: str, version: str | None = None, note: str | None = None, seen: bool = True
    ) -> None:
        """Write down a site's state, and that it was heard of just now unless `seen` is false.

        Without a version the last one stands; without a note there is none any more.
        """
        now = time.time() if seen else None
        self._write(SEE_SITE, _text(name), now, _text(state), _text(version), _text(note))

    def add_event(
        self,
        kind: EventKind,
        *,
        site: str | None = None,
        stage: str | None = None,
        round: int | None = None,  # noqa: A002 — the column's name, and the record's
        reason: str | None = None,
        file: str | None = None,
    ) -> int:
        """Append an event; its number."""
        if kind not in get_args(EventKind):
            raise ParameterError(f"kind: expected one of {', '.join(get_args(EventKind))}, got {kind!r}.")
        values = [_text(site), _text(stage), round, kind, _text(reason), _text(file)]
        return self._write(ADD_EVENT, time.time(), *values)

    def forget_rounds(self) -> None:
        """Forget all rounds: the run begins anew, with fewer sites or with new keys."""
        self._write("DELETE FROM rounds")

    def rounds(self, skip: int = 0) -> list[Round]:
        """All rounds, or those after so many, in the order in which they were first written."""
        return [_round_of(*row) for row in self._read(f"{ROUNDS} LIMIT -1 OFFSET ?", skip)]

    def last_round(self) -> Round | None:
        """The round that was reached last."""
        return next((_round_of(*row) for row in self._read(f"{ROUNDS} DESC LIMIT 1")), None)

    def sites(self) -> list[Site]:
        """All sites, by name."""
        names = ("name", "last_seen", "state", "version", "note")
        rows = self._read(f"SELECT {', '.join(names)} FROM sites ORDER BY name")
        return [Site(**dict(zip(names, row, strict=True))) for row in rows]

    def events(self, after: int = 0) -> list[Event]:
        """The events with a number above `after`, in order."""
        names = ("id", "at", "site", "stage", "round", "kind", "reason", "file")
        rows = self._read(f"SELECT {', '.join(names)} FROM events WHERE id > ? ORDER BY id", after)
        return [Event(**dict(zip(names, row, strict=True))) for row in rows]

    def last_start(self) -> float:
        """When the last attempt began; 0 if none did."""
        started = "SELECT at FROM events WHERE kind IN ('started', 'resumed')"
        rows = self._read(f"{started} ORDER BY id DESC LIMIT 1")  # not the latest time: clocks are put back
        return float(rows[0][0]) if rows else 0.0

    def copy(self, path: Path) -> None:
        """Write the history as it is into a file of its own, for people elsewhere: whole or not at all."""
        with writing(path) as beside, closing(sqlite3.connect(beside, isolation_level=None)) as target:
            try:
                with closing(sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True)) as source:
                    source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.Error as error:
                raise CheckpointError(f"{self._path}: the history cannot be read ({error}). Check the file.") from error

    def close(self) -> None:
        """Let go of the file. Closing twice is fine."""
        with self._lock:
            if self._writer is None:
                return
            # Without a log, the file can be read where nothing can be written beside it. Whoever reads now prevents it.
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA busy_timeout = 0")
                self._writer.execute("PRAGMA journal_mode = DELETE")
            self._writer.close()
            self._writer = None

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, statement: str, *values: object) -> int:
        with self._lock:
            if self._writer is None:
                raise OutputError(f"{self._path}: expected a history to write to, got one opened to read, or closed.")
            try:
                return int(self._writer.execute(statement, values).lastrowid or 0)
            except sqlite3.Error as error:
                raise OutputError(f"{self._path}: the history cannot be written ({error}). Free the disk.") from error

    def _read(self, query: str, *values: object) -> list[Any]:
        """Each query opens the file anew: it may appear or be replaced, and no lock outlives the answer."""
        address = f"{self._path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS)) as reader:
                if not _is_ours(reader, self._path):
                    return []
                return reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            if not self._path.exists():
                return []
            raise CheckpointError(f"{self._path}: the history cannot be read ({error}). Check the file.") from error


def _open_writer(path: Path) -> sqlite3.Connection:
    """A connection to write by, every statement at once its own transaction."""
    try:
        writer = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise OutputError(f"{path}: the history cannot be written ({error}). Choose another place.") from error
    try:
        _is_ours(writer, path)  # before anything is altered
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.executescript(SCHEMA)
    except sqlite3.Error as error:
        writer.close()
        raise OutputError(f"{path}: the history cannot be written ({error}). Remove it, or free the disk.") from error
    except CheckpointError:
        writer.close()
        raise
    return writer


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether it has our tables; not yet, if its writer has only just begun."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, HISTORY_FORMAT):
        raise CheckpointError(f"{path}: a history of another version of silograph. Read it by that version.")
    return bool(version)


def _round_of(stage: str, number: int, at: float, seconds: float, silos: int, down: int, up: int, text: str) -> Round:
    record = json.loads(text)
    return Round(
        stage=stage,
        round=number,
        finished_at=at,
        seconds=seconds,
        gap=record.get("gap"),
        objective=record.get("objective"),
        silos=silos,
        bytes_down=down,
        bytes_up=up,
        record=record,
    )


def _finite(value: object) -> float | None:
    number = math.nan if value is None else float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


def _json(value: object) -> str:
    return json.dumps(value, default=lambda other: other.item())  # NumPy's numbers become Python's


def _text(value: str | None) -> str | None:
    """A text that SQLite can hold: a site's may be endless, and hold half characters."""
    return None if value is None else value[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
