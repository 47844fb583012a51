"""Which versions of its data a site has answered for without noise, and what a new one would show together with them.

A version is the SHA-256 of the tables' files and of how they are read. What a site answers is a sum over rows, so the
answers for two versions differ by the sum over the rows that came, less the sum over those that went. With more
versions, sums and differences of them all can be made. Rows that were always together stay together in each of these,
so we look at groups: rows that the same versions have. A new version may divide a group, and brings a group of new
rows. The sum over every part is then known. Of few rows, it says too much of each.

Of a site with several tables the same holds of tables, whose sum its answers are. Then it is tables that count: one in
which a row has changed is another table.

Studies may read the same version in two ways: without the rows that have gaps, or without nodes that are constant. The
difference of such answers is what one of them leaves out, so that each way counts as a version (`Reading`). So do
ranks. A row that comes changes the ranks of the others only a little, so that rows are known by their own numbers
there, too: if two versions differ in few rows, it does not help that one of them, or both, were ranked.

A row with a gap, or a table that lacks a node, is in the sums of some pairs and not of others. So it counts as changed
where it came or went, but hides nobody: groups are as large as the number of those in them that are whole.

    ledger/key             random, made here: who has not got it cannot try rows out
    ledger/NAMES.centre    each node's mean, of the first rows that were read with these nodes
    ledger/VERSION.rows    8 bytes per row, its keyed hash, sorted; the last bit says whether it is whole. Of a version
                           that was read in another way, VERSION-rows, VERSION-rows-some-ranks and so on
    ledger/VERSION.tables  the same per table, made of its rows' hashes: whatever its format, and in whatever order
    ledger/VERSION.order   the same of tables, in their order instead of sorted: where a study compares groups of them
    ledger/NAME.group      of a group of tables whose own sums were told, their hashes, sorted; NAME is their SHA-256.
                           It is a sum over some tables, as a version is one over all: so both divide each other
    ledger/VERSION.json    how many of them, when first and last, which studies, runs and rounds. It is on the disk
                           before the first answer leaves: a version without it was never answered for
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import locked
from silograph._util.types import Matrix, Vector
from silograph.data.readers import Signals
from silograph.errors import ParameterError
from silograph.federation.folders import SiteFolder
from silograph.federation.site.data import SiteData
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile

Rows = NDArray[np.uint64]  # a hash per row or per table, sorted; equal ones are numbered, so that no two are alike
Unit = Literal["row", "table"]
Groups = Sequence[Sequence[int]]  # of tables, by their numbers in the order of a version
UNITS: tuple[Unit, ...] = ("row", "table")
HASH_BYTES, KEY_BYTES = 8, 32
WHOLE = np.uint64(1)  # the bit of a hash that says so
ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads the numbers of equal rows over all hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a study has left out of tables."""

    rows: bool = False  # those with gaps
    some: bool = False  # nodes that are constant: a table may have some of the study's alone
    ranks: bool = False  # all of a value but its rank

    @classmethod
    def of(cls, study: StudyFile) -> "Reading":
        """As the study says."""
        ranks = study.transform == "ranks"
        return cls(rows=study.missing == "rows", some=study.settings.may_lack_nodes, ranks=ranks)

    def version(self, version: str) -> str:
        """What the ledger calls a version that was read so."""
        left_out = {"rows": self.rows, "some": self.some, "ranks": self.ranks}
        return "-".join([version, *(name for name, out in left_out.items() if out)])


AS_THEY_ARE = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A version of the data that answers left for."""

    version: str
    size: int  # rows, or tables
    first: str  # UTC
    last: str  # UTC, of the last new answer
    studies: dict[str, dict[str, int]]  # study → run → rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How the data differ from a version that was answered for."""

    earlier: Answered
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the data differ from all versions that were answered for, and what their answers would show."""

    unit: Unit
    size: int
    changes: tuple[Change, ...] = ()  # the nearest version first
    fewest: int | None = None  # rows or tables whose sum would become known by itself; None: of no group it would
    others: int = 0  # versions that were answered for when rows counted and now tables do, or the other way round

    def count(self, number: int) -> str:
        """So many rows or tables, in words."""
        return f"{number} {self.unit}{'' if number == 1 else 's'}"

    def objection(self, settings: SiteSettings) -> str | None:
        """Why this version should not be answered for without a person's word; nothing if it may be."""
        limit = "min_new_samples" if self.unit == "row" else "min_tables"
        least: int = getattr(settings, limit)
        if self.others:
            before, now = ("one table", "several") if self.unit == "table" else ("several tables", "one")
            return f"answers left when site.toml named {before}, now it names {now}: what both show is not counted"
        if self.fewest is not None and self.fewest < least:
            few = self.count(self.fewest) if self.fewest else f"{self.unit}s with gaps or missing nodes"
            return (
                f"together with answers for earlier versions, answers for this one show {few} by themselves; "
                f"site.toml asks for {limit} = {least}"
            )
        for change in self.changes:
            if change.added > self.size - least and abs(self.size - change.earlier.size) < least:
                return (
                    f"hardly a {self.unit} is as in version {change.earlier.version} of "
                    f"{self.count(change.earlier.size)}: if most are the same in other units, digits or columns, the "
                    "difference of answers shows the others"
                )
        return None


class Ledger:
    """The versions of its data that a site has answered for."""

    def __init__(self, folder: Path) -> None:
        self._folder = SiteFolder(folder).ledger

    def rows(self, data: SiteData, reading: Reading = AS_THEY_ARE) -> Rows:
        """The rows, or the tables, as this version has them; they are read once for each version."""
        version = reading.version(data.version)
        path = self._path(version, "table" if data.several else "row")
        order = self._folder / f"{version}.order"
        if not path.exists() or (data.several and not order.exists()):
            self._folder.mkdir(exist_ok=True, mode=0o700)
            with locked(self._folder / "lock"):
                key = self._key()
            hashed = [self._hash_rows(signals, key, reading) for signals in data.signals()]
            data.check_unchanged()
            found = _hash_tables(hashed, key, len(data.names), reading) if data.several else hashed[0].rows
            with locked(self._folder / "lock"):
                if data.several:
                    write_bytes(order, found.tobytes(), durable=True, under_lock=True)
                write_bytes(path, np.sort(found).tobytes(), durable=True, under_lock=True)
        return self._read_rows(version)

    def _hash_rows(self, signals: Signals, key: bytes, reading: Reading) -> "HashedTable":
        return _hash_rows(signals, key, self._folder / f"{_digest_of_names(signals).hex()}.centre", reading)

    def answered(self) -> list[Answered]:
        """The versions that were answered for, oldest first."""
        found = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted(found, key=lambda each: each.first)

    def compare(self, data: SiteData, reading: Reading = AS_THEY_ARE, groups: Groups = ()) -> Comparison:
        """How this version differs from all that were answered for; if it was itself, nothing new can be shown.

        With `groups` of its tables, sums over each are told, too.
        """
        self.rows(data, reading)
        return self.compare_version(reading.version(data.version), groups)

    def compare_version(self, version: str, groups: Groups = ()) -> Comparison:
        """The same of a version whose rows were read before."""
        rows, unit = self._read_rows(version), self._unit(version)
        new = [some for some in self._hashes_of(version, groups) if not self._group_path(some).exists()]
        known = (self._folder / f"{version}.json").exists()
        if known and not new:
            return Comparison(unit=unit, size=rows.size)
        answered = self.answered()
        earlier = [each for each in answered if self._unit(each.version) == unit]
        kept = [self._read_rows(each.version) for each in earlier]
        changes = [
            Change(earlier=each, added=_n_beyond(rows, old), removed=_n_beyond(old, rows))
            for each, old in zip(earlier, kept, strict=True)
        ]
        changes.sort(key=lambda change: change.added + change.removed)
        return Comparison(
            unit=unit,
            size=rows.size,
            changes=() if known else tuple(changes),
            fewest=_fewest_of_all([*kept, *self._groups_told(unit)], new if known else [rows, *new]),
            others=len(answered) - len(earlier),
        )

    def note(self, version: str, *, study: str, run: str, groups: Groups = ()) -> None:
        """Write down that a round is about to be answered; a version, or a run, that is new outlasts a power cut."""
        path, now = self._folder / f"{version}.json", datetime.now(UTC).isoformat(timespec="microseconds")
        with locked(self._folder / "lock"):
            for some in self._hashes_of(version, groups):
                if not (group := self._group_path(some)).exists():
                    write_bytes(group, some.tobytes(), durable=True, under_lock=True)
            if path.exists():
                before = self._read(path)
                first, size, studies = before.first, before.size, before.studies
            else:
                first, size, studies = now, self._read_rows(version).size, {}
            runs = studies.setdefault(study, {})
            runs[run] = runs.get(run, 0) + 1
            about = {"size": size, "first": first, "last": now, "studies": studies}
            write_bytes(path, json.dumps(about).encode(), durable=runs[run] == 1, under_lock=True)

    def _key(self) -> bytes:
        path = self._folder / "key"
        if not path.exists():
            if any(
                any(self._folder.glob(f"*.{unit}s")) for unit in UNITS
            ):  # with another key, no row would be known again
                raise ParameterError(f"{path}: is gone, and rows of earlier versions need it. Put back a copy.")
            write_bytes(path, secrets.token_bytes(KEY_BYTES), durable=True)  # for its owner only
        return path.read_bytes()

    def _groups_told(self, unit: Unit) -> list[Rows]:
        """The tables of each group whose own sums were told."""
        return [_read_hashes(path) for path in sorted(self._folder.glob("*.group"))] if unit == "table" else []

    def _hashes_of(self, version: str, groups: Groups) -> list[Rows]:
        """The hashes of the tables of each group, sorted."""
        if not groups:
            return []
        order = _read_hashes(self._folder / f"{version}.order")
        return [np.sort(order[list(some)]) for some in groups]

    def _group_path(self, some: Rows) -> Path:
        return self._folder / f"{sha256(some.tobytes()).hexdigest()}.group"

    def _path(self, version: str, unit: Unit) -> Path:
        return self._folder / f"{version}.{unit}s"

    def _unit(self, version: str) -> Unit:
        return "table" if self._path(version, "table").exists() else "row"

    def _read_rows(self, version: str) -> Rows:
        return _read_hashes(self._path(version, self._unit(version)))

    def _read(self, path: Path) -> Answered:
        try:
            about: dict[str, Any] = parse_json(path.read_bytes())
            return Answered(version=path.stem, **about)
        except (OSError, ValueError, TypeError) as error:
            raise ParameterError(f"{path}: is damaged ({error}). Put back a copy from your backup.") from error


def fewest_told_apart(earlier: Sequence[Rows], rows: Rows) -> int | None:
    """The size of the smallest group of rows that becomes known by itself once `rows` is answered for, too.

    What counts are whole ones. A group without any has the size 0.
    """
    if not earlier:
        return None
    every = np.unique(np.concatenate([*earlier, rows]))
    versions = np.array([np.isin(every, one, assume_unique=True) for one in earlier])
    _, group = np.unique(np.packbits(versions, axis=0), axis=1, return_inverse=True)
    inside, old = np.isin(every, rows, assume_unique=True), versions.any(axis=0)
    n_groups, whole = group.max() + 1, (every & WHOLE).astype(bool)

    def sizes(part: np.ndarray) -> np.ndarray:
        return np.bincount(group.ravel()[part], minlength=n_groups)

    divided = (sizes(inside) > 0) & (sizes(~inside) > 0)
    parts = [*sizes(inside & whole)[divided], *sizes(~inside & whole)[divided]]
    parts += [np.count_nonzero(~old & whole)] if not old.all() else []
    return min(map(int, parts), default=None)


def _fewest_of_all(earlier: Sequence[Rows], new: Sequence[Rows]) -> int | None:
    """The same where several sums are told at once: each divides what those before it left together."""
    found = [fewest_told_apart([*earlier, *new[:number]], one) for number, one in enumerate(new)]
    return min((fewest for fewest in found if fewest is not None), default=None)


@dataclass(frozen=True, slots=True)
class HashedTable:
    """The hashes of a table's rows, and what tells whether nothing of it is missing."""

    rows: Rows
    n_nodes: int
    varies: bool  # whether no node is constant, which is as good as missing


def _hash_rows(table: Signals, key: bytes, centre: Path, reading: Reading) -> HashedTable:
    """A keyed hash per row: the same for the same numbers under the same names, up to the digits of a float32.

    These are the digits of its distance from a centre that all versions share: of signals that ride on an offset, a
    float32 keeps nothing but the offset, and rows that differ would count as one.
    """
    order = np.argsort(np.array(table.names, dtype=object))
    names = _digest_of_names(table)[: blake2b.PERSON_SIZE]
    found, middle = bytearray(), None
    whole: list[NDArray[Any]] = [np.empty(0, dtype=np.bool_)]
    least, most = np.full(table.n_nodes, np.inf), np.full(table.n_nodes, -np.inf)
    there = ~table.empty()[order] if reading.rows else None  # a row without a node that no row has is not left out
    for chunk in table.chunks(gaps=True):
        rows = np.asarray(chunk[:, order], dtype=np.float64)
        if not rows.size:
            continue
        middle = _read_centre(centre, rows) if middle is None else middle
        if there is not None:
            rows = rows[~np.isnan(rows[:, there]).any(axis=1)]
            if not rows.size:
                continue
        whole.append(np.asarray(np.isfinite(rows).all(axis=1)))
        least, most = np.fmin(least, np.fmin.reduce(rows)), np.fmax(most, np.fmax.reduce(rows))
        with np.errstate(over="ignore"):
            digits = np.ascontiguousarray(rows - middle, dtype=np.float32) + np.float32(0)  # -0 becomes 0
        for row in digits:
            found += blake2b(row, digest_size=HASH_BYTES, key=key, person=names).digest()
    hashes = _told_apart(np.frombuffer(bytes(found), dtype=np.uint64), np.concatenate(whole))
    return HashedTable(np.sort(hashes), table.n_nodes, bool((least < most).all()))


def _hash_tables(tables: Sequence[HashedTable], key: bytes, n_nodes: int, reading: Reading) -> Rows:
    """A keyed hash per table, in their order: the same for the same rows, in any order and any format."""
    persons = [b"some" if reading.some and not one.varies else b"table" for one in tables]
    digests = [
        blake2b(one.rows.tobytes(), digest_size=HASH_BYTES, key=key, person=person)
        for one, person in zip(tables, persons, strict=True)
    ]
    whole = [one.varies and one.n_nodes == n_nodes and bool((one.rows & WHOLE).all()) for one in tables]
    return _told_apart(np.frombuffer(b"".join(one.digest() for one in digests), dtype=np.uint64), np.array(whole))


def _told_apart(hashes: Rows, whole: np.ndarray) -> Rows:
    """Equal ones told apart by their number, and whole ones from others by the last bit."""
    order = np.argsort(hashes, kind="stable")
    sorted_ = hashes[order]
    again = np.empty(hashes.size, dtype=np.uint64)
    again[order] = np.arange(hashes.size) - np.searchsorted(sorted_, sorted_)  # 0 for the first of equal ones
    return ((hashes ^ (again * ODD)) & ~WHOLE) | whole.astype(np.uint64)


def _read_hashes(path: Path) -> Rows:
    try:
        return np.frombuffer(path.read_bytes(), dtype=np.uint64)
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path}: cannot be read ({error}). Put back a copy from your backup.") from error


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
