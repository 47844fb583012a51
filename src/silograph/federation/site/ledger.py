"""Which versions of its table a site has answered for, and what a new version would show together with them.

A version is the SHA-256 of the table's file and of how it is read. What a site answers is a sum over rows, so the
answers for two versions differ by the sum over the rows that came, less the sum over those that went. With more
versions, sums and differences of them all can be made. Rows that were always together stay together in each of these,
so we look at groups: rows that the same versions have. A new version may divide a group, and brings a group of new
rows. The sum over every part is then known. Of few rows, it says too much of each.

    ledger/key             random, made here: who has not got it cannot try rows out
    ledger/NAMES.centre    each node's mean, of the first rows that were read with these nodes
    ledger/VERSION.rows    8 bytes per row, its keyed hash, sorted
    ledger/VERSION.json    how many rows, when first and last, which studies, runs and rounds. It is on the disk before
                           the first answer leaves: a version without it was never answered for
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import locked
from silograph._util.types import Matrix, Vector
from silograph.data.readers import Signals
from silograph.errors import ParameterError
from silograph.federation.folders import SiteFolder
from silograph.federation.site.data import Table

Rows = NDArray[np.uint64]  # a hash per row, sorted; equal rows are numbered, so that no two are alike
HASH_BYTES, KEY_BYTES = 8, 32
ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads the numbers of equal rows over all hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A version of the table that answers left for."""

    version: str
    rows: int
    first: str  # UTC
    last: str  # UTC, of the last new answer
    studies: dict[str, dict[str, int]]  # study → run → rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How the table differs from a version that was answered for."""

    earlier: Answered
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the table differs from all versions that were answered for, and what its answers would show."""

    rows: int
    changes: tuple[Change, ...] = ()  # the nearest version first
    fewest: int | None = None  # rows whose sum would become known by itself; None: of no group it would

    def objection(self, least: int) -> str | None:
        """Why this version should not be answered for without a person's word; nothing if it may be."""
        if self.fewest is not None and self.fewest < least:
            return (
                f"together with answers for earlier versions, answers for this one show {count_rows(self.fewest)} by "
                f"themselves; site.toml asks for min_new_samples = {least}"
            )
        for change in self.changes:
            if change.added > self.rows - least and abs(self.rows - change.earlier.rows) < least:
                return (
                    f"hardly a row is as in version {change.earlier.version} of {count_rows(change.earlier.rows)}: if "
                    "most are the same in other units, digits or columns, the difference of answers shows the others"
                )
        return None


class Ledger:
    """The versions of its table that a site has answered for."""

    def __init__(self, folder: Path) -> None:
        self._folder = SiteFolder(folder).ledger

    def rows(self, table: Table) -> Rows:
        """The rows of the table as this version has them; they are read once for each version."""
        path = self._folder / f"{table.version}.rows"
        if not path.exists():
            self._folder.mkdir(exist_ok=True, mode=0o700)
            with locked(self._folder / "lock"):
                key = self._key()
            hashed = _hash_rows(table.signals, key, self._folder / f"{_digest_of_names(table.signals).hex()}.centre")
            table.check_unchanged()
            with locked(self._folder / "lock"):
                write_bytes(path, hashed.tobytes(), durable=True, under_lock=True)
        return self._read_rows(table.version)

    def answered(self) -> list[Answered]:
        """The versions that were answered for, oldest first."""
        found = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda each: each.first)

    def compare(self, table: Table) -> Comparison:
        """How this version differs from all that were answered for; if it was itself, nothing new can be shown."""
        self.rows(table)
        return self.compare_version(table.version)

    def compare_version(self, version: str) -> Comparison:
        """The same of a version whose rows were read before."""
        rows = self._read_rows(version)
        if (self._folder / f"{version}.json").exists():
            return Comparison(rows=rows.size)
        earlier = self.answered()
        kept = [self._read_rows(each.version) for each in earlier]
        changes = [
            Change(earlier=each, added=_n_beyond(rows, old), removed=_n_beyond(old, rows))
            for each, old in zip(earlier, kept, strict=True)
        ]
        changes.sort(key=lambda change: change.added + change.removed)
        return Comparison(rows=rows.size, changes=tuple(changes), fewest=fewest_told_apart(kept, rows))

    def note(self, version: str, *, study: str, run: str) -> None:
        """Write down that a round is about to be answered; a version, or a run, that is new outlasts a power cut."""
        path, now = self._folder / f"{version}.json", datetime.now(UTC).isoformat(timespec="microseconds")
        with locked(self._folder / "lock"):
            if path.exists():
                before = self._read(path)
                first, n_rows, studies = before.first, before.rows, before.studies
            else:
                first, n_rows, studies = now, self._read_rows(version).size, {}
            runs = studies.setdefault(study, {})
            runs[run] = runs.get(run, 0) + 1
            about = {"rows": n_rows, "first": first, "last": now, "studies": studies}
            write_bytes(path, json.dumps(about).encode(), durable=runs[run] == 1, under_lock=True)

    def _key(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            if any(self._folder.glob("*.rows")):  # with another key, no row would be known again
                raise ParameterError(f"{path}: is gone, and rows of earlier versions need it. Put back a copy.")
            write_bytes(path, secrets.token_bytes(KEY_BYTES), durable=True)  # for its owner only
        return path.read_bytes()

    def _read_rows(self, version: str) -> Rows:
        path = self._folder / f"{version}.rows"
        try:
            return np.frombuffer(path.read_bytes(), dtype=np.uint64)
        except (OSError, ValueError) as error:
            raise ParameterError(f"{path}: cannot be read ({error}). Put back a copy from your backup.") from error

    def _read(self, path: Path) -> Answered:
        try:
            about: dict[str, Any] = parse_json(path.read_bytes())
            return Answered(version=path.stem, **about)
        except (OSError, ValueError, TypeError) as error:
            raise ParameterError(f"{path}: is damaged ({error}). Put back a copy from your backup.") from error


def fewest_told_apart(earlier: Sequence[Rows], rows: Rows) -> int | None:
    """The size of the smallest group of rows that becomes known by itself once `rows` is answered for, too."""
    if not earlier:
        return None
    every = np.unique(np.concatenate([*earlier, rows]))
    versions = np.array([np.isin(every, one, assume_unique=True) for one in earlier])
    _, group = np.unique(np.packbits(versions, axis=0), axis=1, return_inverse=True)
    inside, old = np.isin(every, rows, assume_unique=True), versions.any(axis=0)
    n_groups = group.max() + 1
    here, gone = (np.bincount(group.ravel()[part], minlength=n_groups) for part in (inside, ~inside))
    divided = (here > 0) & (gone > 0)
    parts = [*here[divided], *gone[divided], np.count_nonzero(~old)]
    return min((int(size) for size in parts if size), default=None)


def _hash_rows(table: Signals, key: bytes, centre: Path) -> Rows:
    """A keyed hash per row: the same for the same numbers under the same names, up to the digits of a float32.

    These are the digits of its distance from a centre that all versions share: of signals that ride on an offset, a
    float32 keeps nothing but the offset, and rows that differ would count as one.
    """
    order = np.argsort(np.array(table.names, dtype=object))
    names = _digest_of_names(table)[: blake2b.PERSON_SIZE]
    found, middle = bytearray(), None
    for chunk in table.chunks(gaps=True):
        rows = np.asarray(chunk[:, order], dtype=np.float64)
        if not rows.size:
            continue
        middle = _read_centre(centre, rows) if middle is None else middle
        with np.errstate(over="ignore"):
            digits = np.ascontiguousarray(rows - middle, dtype=np.float32) + np.float32(0)  # -0 becomes 0
        for row in digits:
            found += blake2b(row, digest_size=HASH_BYTES, key=key, person=names).digest()
    hashes = np.sort(np.frombuffer(bytes(found), dtype=np.uint64))
    again = np.arange(hashes.size) - np.searchsorted(hashes, hashes)  # 0 for the first of equal rows
    return np.sort(hashes ^ (again.astype(np.uint64) * ODD))


def _digest_of_names(table: Signals) -> bytes:
    return sha256(json.dumps(sorted(table.names)).encode()).digest()


def _read_centre(path: Path, rows: Matrix) -> Vector:
    """The centre of the first version that had these nodes; of these rows, if there was none."""
    if not path.exists():
        seen = ~np.isnan(rows)  # a gap is as good as a digit, to know a row again
        middle = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        write_bytes(path, middle.tobytes(), durable=True)
    return np.frombuffer(path.read_bytes(), dtype=np.float64)


def _n_beyond(these: Rows, those: Rows) -> int:
    return int(np.setdiff1d(these, those, assume_unique=True).size)


def count_rows(n_rows: int) -> str:
    """How many rows, in words."""
    return "1 row" if n_rows == 1 else f"{n_rows} rows"
