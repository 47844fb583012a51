"""A site's data: its table, brought into the study's order of nodes and turned into costs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from silograph._util.files import sha256_of
from silograph._util.types import Vector
from silograph.data.alignment import order_of
from silograph.data.costs import Missing, TableOptions, read_costs
from silograph.data.readers import Signals
from silograph.errors import SilographError, SilosError
from silograph.federation.refusals import Refused
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.methods.common.presence import check_silo
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """How to know a file again: by its checksum, and by a stamp that shows at once that nobody touched it."""

    sha256: str
    stamp: tuple[int, int, int]  # size, time of change, number of the file


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Size, time of the last change and number of a file."""
    about = path.stat()
    return (about.st_size, about.st_mtime_ns, about.st_ino)


def fingerprint(path: Path) -> Fingerprint:
    """A file's checksum. The stamp is taken before, so that a change during the reading is noticed later."""
    stamp = stamp_of(path)
    return Fingerprint(sha256=sha256_of(path), stamp=stamp)


def version_of(settings: SiteSettings, data: str) -> str:
    """The version of the table, for which an approval holds: the SHA-256 of its file's and of how it is read."""
    how = [data, sorted(settings.drop), settings.key, settings.header, settings.keep_rows]
    return sha256(json.dumps(how).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table as it is now, its values not read yet."""

    path: Path
    known: Fingerprint
    version: str
    signals: Signals

    def check_unchanged(self) -> None:
        """Refuse where the file was changed while it was read: its rows may be of both versions."""
        if stamp_of(self.path) != self.known.stamp:
            raise Refused("data", f"{self.path}: was changed while it was read")


def look_at_table(settings: SiteSettings, folder: Path, before: Fingerprint | None = None) -> Table:
    """The site's table and its version; a file that nobody touched since `before` is not read for that."""
    path = settings.data_in(folder)
    try:
        known = before if before is not None and stamp_of(path) == before.stamp else fingerprint(path)
        signals = open_table(settings, folder, standardize=False)[1]
    except (SilographError, OSError) as error:
        raise Refused("data", f"{path}: {error}") from error
    return Table(path=path, known=known, version=version_of(settings, known.sha256), signals=signals)


def open_table(
    settings: SiteSettings, folder: Path, *, standardize: bool, missing: Missing = "error"
) -> tuple[Path, Signals, TableOptions]:
    """The site's table, its nodes known, its values not read yet."""
    path = settings.data_in(folder)
    options = TableOptions(
        standardize=standardize,
        drop=tuple(settings.drop),
        key=settings.key,
        header=settings.header,
        missing=missing,
        keep_rows=settings.keep_rows,
    )
    return path, options.open(path), options


def check_nodes(nodes: Sequence[str], names: Sequence[str], site: str, missing_nodes: str = "error") -> None:
    """Refuse unless the table has just the nodes of the study, in any order, or some where it may lack others."""
    try:
        order_of(nodes, names, first="the study", silo=site, missing_nodes=missing_nodes)
    except SilosError as error:
        raise Refused("nodes", str(error)) from error


def check_scale(cost: Vector, study: StudyFile, path: Path) -> None:
    """Refuse a table whose mean squared difference is not in the range that the study gives."""
    scale, between = float(cost.mean()), study.scale
    if between is not None and not between[0] <= scale <= between[1]:
        low, high = between
        raise Refused("scale", f"{path}: its mean squared difference is {scale:g}, the study says {low:g} to {high:g}")


def load_silo(folder: Path, settings: SiteSettings, study: StudyFile, nodes: Sequence[str]) -> tuple[Silo, Fingerprint]:
    """The silo, and the fingerprint of its file; refuses data that the site's limits forbid."""
    try:
        path, table, options = open_table(settings, folder, standardize=study.standardize, missing=study.missing)
        known = fingerprint(path)
        some = study.settings.missing_nodes
        check_nodes(nodes, table.names, settings.name, some)  # first: a million names are no reason to make pairs
        pairs = pairs_of(study, nodes)
        order = order_of(nodes, table.names, first="the study", silo=settings.name, missing_nodes=some)
        read = read_costs(
            path,
            table,
            pairs,
            options,
            order=order,
            missing_nodes=some,
            blocks=study.settings.holds_out,
            on_progress=lambda part: None,
        )
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_in(folder)}: {error}") from error
    check_scale(read.cost, study, path)
    least = settings.least_samples(len(nodes))
    if read.n_samples is None or read.n_samples < least:
        raise Refused("samples", f"{path}: has {read.n_samples} samples, the least is {least}")
    about = {"name": settings.name, "cost": read.cost, "n_samples": read.n_samples, "blocks": read.blocks}
    silo = Silo.on(pairs, read.present, **about)
    try:
        check_costs(read.cost, study.settings.cost_unit_used, path.name)
        check_silo(study.settings, silo)
    except SilographError as error:
        raise Refused("data", str(error)) from error
    return silo, known
