"""A site's data: one table, or several that are silos each, brought into the study's order of nodes and into costs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from silograph._util.files import sha256_of
from silograph._util.types import Vector
from silograph.data.alignment import all_nodes, order_of
from silograph.data.costs import TableOptions, read_costs
from silograph.data.folders import FoundTable, find_tables
from silograph.data.readers import Signals
from silograph.errors import SilographError, SilosError
from silograph.federation.refusals import Refused
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.graph.pairs import Pairs
from silograph.methods.common.presence import check_silo
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs

LEAST_ROWS = 2  # of each of several tables; of one row, no mean is one

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
        return (self.options.open(table.path) for table in self.tables)

    def check_nodes(self, nodes: Sequence[str], site: str, *, missing_nodes: str) -> None:
        """Refuse unless every table has just these nodes, in any order; or, where it is allowed, some of them."""
        for table, names in zip(self.tables, self.nodes, strict=True):
            source = table.path.name if self.several else site
            check_nodes(nodes, names, source, missing_nodes=missing_nodes)

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
    how = [data, sorted(settings.drop), settings.key, settings.header, settings.keep_rows]
    return sha256(json.dumps(how).encode()).hexdigest()


def look_at_data(settings: SiteSettings, folder: Path, before: Fingerprint | None = None) -> SiteData:
    """The site's data and their version; a file that nobody touched since `before` is not read for that."""
    try:
        tables = tables_of(settings, folder)
        known = fingerprint(tables, before)
        options = table_options(settings)
        nodes = tuple(options.open(table.path).names for table in tables)
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    several = settings.has_several(folder)
    sums = [(table.name, known.sha256[str(table.path)]) for table in tables]
    version = version_of(settings, sums if several else sums[0][1])
    return SiteData(tables=tables, nodes=nodes, options=options, known=known, version=version, several=several)


def table_options(settings: SiteSettings) -> TableOptions:
    """How the site's tables are read, but for what a study says."""
    return TableOptions(drop=settings.drop, key=settings.key, header=settings.header, keep_rows=settings.keep_rows)


def check_nodes(nodes: Sequence[str], names: Sequence[str], source: str, *, missing_nodes: str) -> None:
    """Refuse unless a table has just the nodes of the study, in any order; or, where it is allowed, some of them."""
    try:
        order_of(nodes, names, first="the study", silo=source, missing_nodes=missing_nodes)
    except SilosError as error:
        raise Refused("nodes", str(error)) from error


def check_scale(cost: Vector, study: StudyFile, path: Path) -> None:
    """Refuse a table whose mean squared difference is not in the range that the study gives."""
    scale, between = float(cost.mean()), study.scale
    if between is not None and not between[0] <= scale <= between[1]:
        low, high = between
        raise Refused("scale", f"{path}: its mean squared difference is {scale:g}, the study says {low:g} to {high:g}")


def load_silos(settings: SiteSettings, data: SiteData, study: StudyFile, nodes: Sequence[str]) -> list[Silo]:
    """The site's silos; refuses data that the site's limits forbid."""
    if data.several and len(data.tables) < settings.min_tables:
        raise Refused("tables", f"has {len(data.tables)} tables, the least is {settings.min_tables}")
    # First: a list of a million names is no reason to make pairs
    data.check_nodes(nodes, settings.name, missing_nodes=study.settings.missing_nodes)
    try:
        pairs = pairs_of(study, nodes)
        options = replace(data.options, standardize=study.standardize, missing=study.missing)
        silos = [
            _read(table, study, nodes, pairs, options, table.name if data.several else settings.name)
            for table in data.tables
        ]
        data.check_unchanged()
        _check_samples(settings, data, silos, len(nodes))
        for table, silo in zip(data.tables, silos, strict=True):
            check_costs(silo.cost, study.settings.cost_unit_used, table.path.name)
            check_silo(study.settings, silo)
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    return silos


def _read(
    table: FoundTable, study: StudyFile, nodes: Sequence[str], pairs: Pairs, options: TableOptions, name: str
) -> Silo:
    signals, allowed = options.open(table.path), study.settings.missing_nodes
    order = order_of(nodes, signals.names, first="the study", silo=name, missing_nodes=allowed)
    read = read_costs(
        table.path,
        signals,
        pairs,
        options,
        order=order,
        missing_nodes=allowed,
        blocks=study.settings.holds_out,
        on_progress=lambda part: None,
    )
    check_scale(read.cost, study, table.path)
    about = {"name": name, "cost": read.cost, "n_samples": read.n_samples, "blocks": read.blocks}
    return Silo.on(pairs, read.present, **about)


def _check_samples(settings: SiteSettings, data: SiteData, silos: Sequence[Silo], n_nodes: int) -> None:
    for table, silo in zip(data.tables, silos, strict=True):
        if data.several and (silo.n_samples or 0) < LEAST_ROWS:
            raise Refused("samples", f"{table.path}: has {silo.n_samples} samples, the least is {LEAST_ROWS}")
    n_samples, least = sum(silo.n_samples or 0 for silo in silos), settings.least_samples(n_nodes)
    if n_samples < least:
        known = "no number of" if silos[0].n_samples is None else n_samples
        raise Refused("samples", f"{data.place}: has {known} samples, the least is {least}")
