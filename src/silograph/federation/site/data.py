"""A site's data: one table, or several that are silos each, brought into the study's order of nodes and into costs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from silograph._util.files import sha256_of
from silograph.data.alignment import order_of
from silograph.data.costs import TableOptions, read_costs
from silograph.data.folders import FoundTable, find_tables
from silograph.data.readers import Signals
from silograph.errors import SilographError, SilosError
from silograph.federation.refusals import Refused
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import spec_of
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs

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
    signals: tuple[Signals, ...]
    known: Fingerprint
    version: str
    several: bool  # whether it is tables that count, rather than the rows of one

    @property
    def place(self) -> str:
        """What messages for the site's own people call it."""
        return f"{len(self.tables)} tables" if self.several else str(self.tables[0].path)

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes of the first table."""
        return tuple(self.signals[0].names)

    def check_nodes(self, nodes: Sequence[str], site: str) -> None:
        """Refuse unless every table has just these nodes, in any order."""
        for table, signals in zip(self.tables, self.signals, strict=True):
            check_nodes(nodes, signals.names, table.path.name if self.several else site)

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


def version_of(settings: SiteSettings, data: str | Sequence[Sequence[str]]) -> str:
    """The version of the data, for which an approval holds: of the files' checksums and of how they are read."""
    how = [data, sorted(settings.drop), settings.key, settings.header]
    return sha256(json.dumps(how).encode()).hexdigest()


def look_at_data(settings: SiteSettings, folder: Path, before: Fingerprint | None = None) -> SiteData:
    """The site's data and their version; a file that nobody touched since `before` is not read for that."""
    try:
        tables = tables_of(settings, folder)
        known = fingerprint(tables, before)
        signals = tuple(table_options(settings).open(table.path) for table in tables)
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    several = settings.has_several(folder)
    sums = [(table.name, known.sha256[str(table.path)]) for table in tables]
    version = version_of(settings, sums if several else sums[0][1])
    return SiteData(tables=tables, signals=signals, known=known, version=version, several=several)


def table_options(settings: SiteSettings, *, standardize: bool = False) -> TableOptions:
    """How the site's tables are read."""
    return TableOptions(standardize=standardize, drop=tuple(settings.drop), key=settings.key, header=settings.header)


def check_nodes(nodes: Sequence[str], names: Sequence[str], source: str) -> None:
    """Refuse unless a table has just the nodes of the study, in any order."""
    try:
        order_of(nodes, names, first="the study", silo=source)
    except SilosError as error:
        raise Refused("nodes", str(error)) from error


def load_silos(settings: SiteSettings, data: SiteData, study: StudyFile, nodes: Sequence[str]) -> list[Silo]:
    """The site's silos; refuses data that the site's limits forbid."""
    if data.several and len(data.tables) < settings.min_tables:
        raise Refused("tables", f"has {len(data.tables)} tables, the least is {settings.min_tables}")
    data.check_nodes(nodes, settings.name)  # first: a list of a million names is no reason to make pairs
    try:
        pairs = pairs_of(study, nodes)
        options = table_options(settings, standardize=study.standardize)
        silos = [
            _read(table, signals, study, nodes, pairs, options, table.name if data.several else settings.name)
            for table, signals in zip(data.tables, data.signals, strict=True)
        ]
        data.check_unchanged()
        _check_samples(settings, data, silos, len(nodes))
        for table, silo in zip(data.tables, silos, strict=True):
            check_costs(silo.cost, study.settings.cost_unit_used, table.path.name)
            spec_of(study.settings.method).check_silo(study.settings, silo)
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    return silos


def _read(
    table: FoundTable,
    signals: Signals,
    study: StudyFile,
    nodes: Sequence[str],
    pairs: Pairs,
    options: TableOptions,
    name: str,
) -> Silo:
    order, blocks = order_of(nodes, signals.names, first="the study", silo=name), study.settings.holds_out
    read = read_costs(table.path, signals, pairs, options, order=order, blocks=blocks, on_progress=lambda part: None)
    return Silo(name=name, pairs=pairs, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks)


def _check_samples(settings: SiteSettings, data: SiteData, silos: Sequence[Silo], n_nodes: int) -> None:
    n_samples, least = sum(silo.n_samples or 0 for silo in silos), settings.least_samples(n_nodes)
    if n_samples < least:
        known = "no number of" if silos[0].n_samples is None else n_samples
        raise Refused("samples", f"{data.place}: has {known} samples, the least is {least}")
