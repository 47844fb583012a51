"""From files to silos: headers first, so that all tables are known to fit, then the values, one table at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from silograph._util.files import sha256_of
from silograph._util.naming import setting
from silograph._util.types import IntVector
from silograph.analysis.choosing import chooses_coupling
from silograph.analysis.tables import TableFacts, facts_of
from silograph.data.alignment import NAMED_SO, all_nodes, order_of, wrong_way_round
from silograph.data.costs import TableCosts, TableOptions, read_costs
from silograph.data.folders import FoundTable
from silograph.data.pairwise import AnyMoments
from silograph.data.tiles import CostTiles
from silograph.errors import MissingExtraError, SignalError, SilographError, SilosError
from silograph.graph.pairs import Pairs
from silograph.local.large import stores_no_costs
from silograph.local.learn import Settings
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from silograph.runs.request import LearnRequest
from silograph.runs.signs import can_tell_signs

OnProgress = Callable[[str, float | None], None]  # what is going on, and which part of it is done, where that is known
MOST_FAULTS = 5  # tables that an error tells of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All tables, read."""

    nodes: tuple[str, ...]
    pairs: Pairs
    silos: list[Silo]
    sources: Mapping[str, Mapping[str, Any]]  # what each silo's record tells of its file
    tiles: CostTiles | None  # of one large table, instead of a silo: nobody stores its costs
    facts: Sequence[TableFacts]  # by which doubtful ones are known
    moments: Mapping[str, Sequence[AnyMoments]]  # of each silo's blocks, where its partial correlations are to be told

    @property
    def checksums(self) -> list[str]:
        """The SHA-256 of each file."""
        return [source["sha256"] for source in self.sources.values()]


class Faults:
    """What is wrong with some of many tables, told at once rather than one at each try."""

    def __init__(self) -> None:
        self.errors: list[SilographError] = []

    @contextmanager
    def collecting(self, one: FoundTable) -> Iterator[None]:
        """Keep an error of one table; what is wrong with the installation is raised.

        Files of several sites may have the same name, so there it is their paths that are told.
        """
        try:
            yield
        except MissingExtraError:
            raise
        except SilographError as error:
            text, name = str(error), one.path.name
            if one.site is not None and text.startswith(name):
                text = f"{one.path}{text[len(name) :]}"
            self.errors.append((SilosError if isinstance(error, SilosError) else SignalError)(text))

    def check(self, n_tables: int, *, stopped: bool = False) -> None:
        """Raise the errors as one, if there are any."""
        if len(self.errors) == 1 and (n_tables == 1 or not stopped):
            raise self.errors[0]
        if self.errors:
            some, rest = self.errors[:MOST_FAULTS], len(self.errors) - MOST_FAULTS
            more = [f"… and {rest} more."] if rest > 0 else ["The tables after these were not read."] if stopped else []
            many = f"{len(self.errors)} of {n_tables} tables cannot be used:"
            raise type(some[0])("\n".join([many, *map(str, some), *more])) from some[0]


def read_tables(request: LearnRequest, on_progress: OnProgress) -> Tables:
    """Every table as a silo, its nodes in the order of the first, or of all where silos may lack some."""
    found, options, allowed = request.found, request.tables, request.missing_nodes
    headers = _read_headers(found, options, on_progress)
    nodes = all_nodes(headers) if allowed == "allow" else headers[0]
    orders = _orders(found, headers, nodes, options, allowed)
    pairs = options.pairs(nodes, zeta=request.zeta)
    blocks = _holds_out(request, len(found), pairs)
    bounds = request.bounds(nodes)
    silos, sources, facts, faults, tiles = [], {}, [], Faults(), None
    large, signed, moments = _is_large(request, pairs), _tells_signs(request, len(found), pairs), {}
    with ThreadPoolExecutor(1) as pool:  # checksums read the files once more, beside the reading
        checksums = [pool.submit(sha256_of, one.path) for one in found]
        for number, (one, order, checksum) in enumerate(zip(found, orders, checksums, strict=True)):
            show = _progress(on_progress, one.path, number, len(found))
            with faults.collecting(one):
                table, _ = options.open_some(one.path)
                read = read_costs(
                    one.path,
                    table,
                    pairs,
                    options,
                    order=order,
                    missing_nodes=allowed,
                    blocks=blocks,
                    moments=signed,
                    tiles=large,
                    bounds=bounds,
                    on_progress=show,
                )
                tiles = read.tiles
                if tiles is None:
                    silo = Silo.on(
                        pairs, read.present, name=one.silo, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks
                    )
                    silos.append(silo)
                sources[one.silo] = source_of(one, read, checksum.result())
                facts.append(facts_of(one.silo, len(nodes), read, sha256=checksum.result()))
                if signed:
                    moments[one.silo] = read.moments
            if len(faults.errors) == MOST_FAULTS:
                pool.shutdown(cancel_futures=True)
                break
    faults.check(len(found), stopped=number + 1 < len(found))
    return Tables(
        nodes=tuple(nodes), pairs=pairs, silos=silos, sources=sources, facts=facts, tiles=tiles, moments=moments
    )


def _holds_out(request: LearnRequest, n_silos: int, pairs: Pairs) -> bool:
    """Whether rows are kept in blocks: to choose by, or to halve."""
    settings, has_rows = request.settings, not request.tables.precomputed
    if request.asked.stability or request.asked.newcomers:
        return True
    if isinstance(settings, Settings):
        return False
    return settings.holds_out or chooses_coupling(settings, n_silos=n_silos, pairs=pairs, has_rows=has_rows)


def _tells_signs(request: LearnRequest, n_silos: int, pairs: Pairs) -> bool:
    """Whether partial correlations are told: of exact rows without gaps, on all pairs of the same nodes."""
    options, settings = request.tables, request.settings
    if isinstance(settings, StudySettings) and settings.privacy.noisy:
        return False
    plain = not options.precomputed and options.missing != "pairs" and request.missing_nodes == "error"
    return plain and can_tell_signs(n_silos, pairs)


def _is_large(request: LearnRequest, pairs: Pairs) -> bool:
    """Whether it is one table of so many nodes that costs are not stored."""
    options, settings = request.tables, request.settings
    plain = not options.precomputed and options.missing != "pairs" and request.missing_nodes == "error"
    return isinstance(settings, Settings) and plain and stores_no_costs(pairs, settings)


def source_of(table: FoundTable, read: TableCosts, sha256: str) -> dict[str, Any]:
    """What a silo's record tells of its file."""
    return {
        "site": table.site,
        "file": str(table.path),
        "sha256": sha256,
        "n_samples": read.n_samples,
        "rows_dropped": read.rows_dropped,
        "gaps": read.gaps,
        "row_counter": read.row_counter,
        "mean_squared_difference": read.average,
    }


def _read_headers(found: Sequence[FoundTable], options: TableOptions, on_progress: OnProgress) -> list[tuple[str, ...]]:
    """The nodes of every table. No file stays open: there may be more of them than a process may open."""
    if len(found) == 1:
        return [options.open(found[0].path).names]
    headers: list[tuple[str, ...]] = []
    same: dict[tuple[str, ...], tuple[str, ...]] = {}  # thousands of tables with the same names share one tuple
    met, faults = set[str](), Faults()
    for number, one in enumerate(found):
        with faults.collecting(one):
            table, here = options.open_some(one.path)
            headers.append(same.setdefault(table.names, table.names))
            met.update(here)
        if number % 100 == 99:
            on_progress(f"Looking at {len(found)} tables", number / len(found))
    faults.check(len(found))
    for column in options.drop:
        if column not in met:
            raise SignalError(
                f"{setting('drop', [column])}: none of the tables has a column of that name. Check the name."
            )
    return headers


def _orders(
    found: Sequence[FoundTable],
    headers: Sequence[tuple[str, ...]],
    nodes: Sequence[str],
    options: TableOptions,
    allowed: str,
) -> list[IntVector | None]:
    def rows(path: Path) -> list[str]:
        return options.open_some(path)[0].row_labels()

    orders, faults, first = [], Faults(), found[0].path
    first_name = first.name if found[0].site is None else str(first)
    for one, names in zip(found, headers, strict=True):
        with faults.collecting(one):
            try:
                orders.append(
                    order_of(
                        nodes,
                        names,
                        first=first_name,
                        silo=one.path.name,
                        missing_nodes=allowed,
                        rows=partial(rows, one.path) if len(faults.errors) < MOST_FAULTS else None,
                        file=True,
                    )
                )
            except SilosError as error:
                sure = NAMED_SO in str(error)  # tables of scans have equally many rows, which says less than names
                other = None if sure or faults.errors else wrong_way_round(names, nodes, rows(first))
                raise SilosError(f"{error}\nOr look at {first_name}. {other}") if other else error from None
    faults.check(len(found))
    return orders


def _progress(on_progress: OnProgress, path: Path, number: int, n_tables: int) -> Callable[[float], None]:
    """Progress in one of a few tables, or over many."""
    if n_tables <= 20:
        on_progress(f"Reading {path.name}", 0.0)
        return partial(on_progress, f"Reading {path.name}")
    on_progress(f"Reading {n_tables} tables: {path.name}", number / n_tables)
    return lambda part: None
