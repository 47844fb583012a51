"""A site's data: one table, or several that are silos each, brought into the study's order of nodes and into costs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from silograph._util.files import sha256_of
from silograph.data.alignment import all_nodes, order_of
from silograph.data.costs import TableOptions
from silograph.data.folders import FoundTable, find_tables
from silograph.data.readers import Signals
from silograph.errors import SilographError, SilosError
from silograph.federation.refusals import Refused
from silograph.federation.site.labels import read_labels
from silograph.federation.site.settings import SiteSettings

Stamp = tuple[int, int, int]  # size, time of change, number of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """How to know the tables again: by checksums, and by stamps that show at once that nobody touched them."""

    sha256: dict[str, str]  # path → checksum
    stamps: dict[str, Stamp]


def stamps_of(tables: Sequence[FoundTable]) -> dict[str, Stamp]:
    """Size, time of the last change and number of each file."""
    found = {str(table.path): table.path.stat() for table in tables}
    return {path: (about.st_size, about.st_mtime_ns, about.st_ino) for path, about in found.items()}


def fingerprint(tables: Sequence[FoundTable], before: Fingerprint | None = None) -> Fingerprint:
    """The files' checksums; of one that nobody touched since `before`, the one from there.

    Stamps are taken first, so that a change during the reading is noticed later.
    """
    stamps = stamps_of(tables)
    same = () if before is None else before.stamps.items() & stamps.items()
    known = {path: before.sha256[path] for path, _ in same} if before is not None else {}
    return Fingerprint(sha256={path: known.get(path) or sha256_of(Path(path)) for path in stamps}, stamps=stamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteData:
    """The site's tables as they are now, their values not read yet."""

    tables: tuple[FoundTable, ...]
    nodes: tuple[tuple[str, ...], ...]  # of each table
    options: TableOptions
    known: Fingerprint
    version: str
    several: bool  # whether it is tables that count, rather than the rows of one
    labels: tuple[str, ...] | None = None  # of several: each one's group, where the site says

    @property
    def place(self) -> str:
        """What messages for the site's own people call it."""
        return f"{len(self.tables)} tables" if self.several else str(self.tables[0].path)

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that any table has."""
        return all_nodes(self.nodes)

    def signals(self) -> Iterator[Signals]:
        """The tables, opened one after the other: of thousands, not all can be open at once."""
        return (self.open(number) for number in range(len(self.tables)))

    def open(self, number: int) -> Signals:
        """One of the tables. Of several, some may lack a column that others have to drop."""
        path = self.tables[number].path
        return self.options.open_some(path)[0] if self.several else self.options.open(path)

    def check_nodes(self, nodes: Sequence[str], site: str, *, missing_nodes: str, whose: str = "the study") -> None:
        """Refuse unless every table has just these nodes, in any order; or, where it is allowed, some of them."""
        for table, names in zip(self.tables, self.nodes, strict=True):
            source = table.path.name if self.several else site
            check_nodes(nodes, names, source, missing_nodes=missing_nodes, whose=whose)

    def check_unchanged(self) -> None:
        """Refuse where a file was changed while it was read: its rows may be of both versions."""
        if stamps_of(self.tables) != self.known.stamps:
            raise Refused("data", f"{self.place}: was changed while it was read")


def tables_of(settings: SiteSettings, folder: Path) -> tuple[FoundTable, ...]:
    """The tables that site.toml names, in the order of their names; raises where there are none, or two of one name."""
    found = sorted(find_tables(settings.data_in(folder)), key=lambda table: table.name)
    for table, other in pairwise(found):
        if table.name == other.name:
            raise SilosError(
                f"{table.path} and {other.path}: expected tables of different names, got {table.name!r} twice. "
                "Rename one of them."
            )
    return tuple(found)


def version_of(settings: SiteSettings, data: str | Sequence[Sequence[str]], labels: Sequence[str] | None = None) -> str:
    """The version of the data, for which an approval holds: of files' checksums, how they are read, and the groups."""
    how = [data, sorted(_no_nodes(settings)), settings.key, settings.header, settings.keep_rows]
    how += [] if labels is None else [labels]
    return sha256(json.dumps(how).encode()).hexdigest()


def look_at_data(settings: SiteSettings, folder: Path, before: Fingerprint | None = None) -> SiteData:
    """The site's data and their version; a file that nobody touched since `before` is not read for that."""
    try:
        tables = tables_of(settings, folder)
        known = fingerprint(tables, before)
        options = table_options(settings)
        several = settings.has_several(folder)
        opened = (options.open_some(table.path)[0] if several else options.open(table.path) for table in tables)
        nodes = tuple(signals.names for signals in opened)
        labels = read_labels(settings, folder, tables) if several else None
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    sums = [(table.name, known.sha256[str(table.path)]) for table in tables]
    version = version_of(settings, sums if several else sums[0][1], labels)
    return SiteData(
        tables=tables, nodes=nodes, options=options, known=known, version=version, several=several, labels=labels
    )


def table_options(settings: SiteSettings) -> TableOptions:
    """How the site's tables are read, but for what a study says."""
    return TableOptions(
        drop=_no_nodes(settings), key=settings.key, header=settings.header, keep_rows=settings.keep_rows
    )


def _no_nodes(settings: SiteSettings) -> tuple[str, ...]:
    """Columns to drop: also the one that names persons."""
    person = settings.person
    return settings.drop if person is None or person in settings.drop else (*settings.drop, person)


def check_nodes(
    nodes: Sequence[str], names: Sequence[str], source: str, *, missing_nodes: str, whose: str = "the study"
) -> None:
    """Refuse unless a table has just the expected nodes, in any order; or, where it is allowed, some of them."""
    try:
        order_of(nodes, names, first=whose, silo=source, missing_nodes=missing_nodes, file=True)
    except SilosError as error:
        raise Refused("nodes", str(error)) from error
