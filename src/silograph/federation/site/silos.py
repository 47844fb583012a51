"""A site's silos: its tables, read as the study says, and held to the site's own limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.types import BoolVector, Vector
from silograph.analysis.doubts import Doubt
from silograph.analysis.tables import doubts_about_tables, facts_of
from silograph.data.alignment import order_of
from silograph.data.costs import TableCosts, read_costs
from silograph.errors import SilographError
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.graph.pairs import Pairs
from silograph.methods.common.presence import check_silo
from silograph.privacy.reading import row_bounds
from silograph.protocol.silo import Silo
from silograph.protocol.units import check_costs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnSilos:
    """What was read of a site's tables, in their order."""

    silos: tuple[Silo, ...]
    read: tuple[TableCosts, ...]
    hidden: tuple[str, ...] = ()  # nodes that too few of the tables have, and none is learned with

    @property
    def summed(self) -> tuple[Vector, Vector]:
        """Of the pairs that any has: the sum of costs, and how many have the pair."""
        total, count = np.zeros((2, self.silos[0].study_pairs.size))
        for silo in self.silos:
            total += silo.spread(silo.cost)
            count += silo.spread(np.ones(silo.pairs.size))
        return total[count > 0], count[count > 0]

    @property
    def scale(self) -> float:
        """The mean squared difference, by what leaves.

        The mean over tables of each one's own would tell that of a table which alone lacks a node: it has fewer pairs.
        """
        total, count = self.summed
        return float((total / count).mean())

    def doubts(self, study: StudyFile) -> tuple[Doubt, ...]:
        """What the site's own people should look at twice."""
        n_nodes = self.silos[0].study_pairs.n_nodes
        facts = [facts_of(silo.name, n_nodes, read) for silo, read in zip(self.silos, self.read, strict=True)]
        return doubts_about_tables(facts, standardize=study.scaled)


def load_silos(settings: SiteSettings, data: SiteData, study: StudyFile, nodes: Sequence[str]) -> OwnSilos:
    """The site's silos; refuses data that the site's limits or the study's range forbid."""
    n_tables = len(set(data.known.sha256.values()))  # copies of one hide nobody
    if data.several and n_tables < settings.min_tables:
        raise Refused("tables", f"has {n_tables} different tables, the least is {settings.min_tables}")
    try:
        own = read_silos(settings, data, study, nodes)
        data.check_unchanged()
        _check_samples(settings, data, own, len(nodes))
        _check_known_samples(study, own)
        if not study.settings.privacy.noisy:  # there, rows have bounds, and a refusal would be told without noise
            check_scale(own.scale, study, data.place)
            # Of the sum, which leaves: by where a site refuses, a coordinator would find the largest of its tables
            check_costs(own.summed[0], study.settings.cost_unit_used, data.place)
        for silo in own.silos:
            check_silo(study.settings, silo)
    except (SilographError, OSError) as error:
        raise Refused("data", f"{settings.data_shown}: {error}") from error
    return own


def read_silos(
    settings: SiteSettings, data: SiteData, study: StudyFile, nodes: Sequence[str], *, blocks: bool = False
) -> OwnSilos:
    """The tables as silos on the study's nodes, whatever limits say; `blocks`: keep rows in blocks in any case."""
    # First: a list of a million names is no reason to make pairs
    data.check_nodes(nodes, settings.name, missing_nodes=study.settings.missing_nodes)
    pairs = pairs_of(study, nodes)
    keep = blocks or study.settings.holds_out
    read = [_read(data, number, study, nodes, pairs, blocks=keep) for number in range(len(data.tables))]
    hidden: tuple[str, ...] = ()
    if data.several and study.settings.may_lack_nodes:
        shown = shown_nodes(_presence(read, pairs), settings.min_tables)
        hidden = tuple(name for name, one in zip(nodes, shown, strict=True) if not one)
        read = [one.among(shown, pairs) for one in read] if hidden else read
    names = [table.name for table in data.tables] if data.several else [settings.name]
    silos = tuple(
        Silo.on(pairs, one.present, name=name, cost=one.cost, n_samples=one.n_samples, blocks=one.blocks)
        for name, one in zip(names, read, strict=True)
    )
    return OwnSilos(silos=silos, read=tuple(read), hidden=hidden)


def _read(
    data: SiteData, number: int, study: StudyFile, nodes: Sequence[str], pairs: Pairs, *, blocks: bool
) -> TableCosts:
    path, some = data.tables[number].path, study.settings.missing_nodes
    options = replace(data.options, standardize=study.standardize, transform=study.transform, missing=study.missing)
    signals = data.open(number)
    return read_costs(
        path,
        signals,
        pairs,
        options,
        order=order_of(nodes, signals.names, first="the study", silo=path.name, missing_nodes=some, file=True),
        missing_nodes=some,
        blocks=blocks,
        bounds=row_bounds(study.settings.privacy, nodes),
        on_progress=lambda part: None,
    )


def _presence(read: Sequence[TableCosts], pairs: Pairs) -> np.ndarray:
    """Which table has which node."""
    has = np.ones((len(read), pairs.n_nodes), dtype=bool)
    for row, one in zip(has, read, strict=True):
        if one.present is not None:
            row[:] = False
            row[one.present] = True
    return has


def shown_nodes(has: np.ndarray, least: int) -> BoolVector:
    """Nodes among which each pair is in no table, or in so many that their sum hides each.

    The sum over few tables would tell each of them: at a pair that one table alone has, it is that table's number.
    """
    has = has.astype(np.int64)
    shown = np.ones(has.shape[1], dtype=np.bool_)
    while True:
        count = (has[:, shown].T @ has[:, shown]).astype(np.int64)
        rare = (count > 0) & (count < least)
        if not rare.any():
            return shown
        worst = np.lexsort((np.diag(count), -rare.sum(axis=0)))[0]  # the most such pairs, then the fewest tables
        shown[np.flatnonzero(shown)[worst]] = False


def check_scale(scale: float, study: StudyFile, place: str) -> None:
    """Refuse data whose mean squared difference, of several tables their mean, is not in the study's range.

    Each table's own would tell, by ranges tried one after another, the least and the largest of them.
    """
    between = study.scale
    if between is not None and not between[0] <= scale <= between[1]:
        low, high = between
        raise Refused("scale", f"{place}: its mean squared difference is {scale:g}, the study says {low:g} to {high:g}")


def _check_known_samples(study: StudyFile, own: OwnSilos) -> None:
    """Refuse a table with fewer rows than noise was measured for."""
    least = study.settings.privacy.min_samples or 0
    for silo in own.silos:
        if (silo.n_samples or 0) < least:
            raise Refused("samples", f"{silo.name}: has {silo.n_samples} rows; the study's noise needs {least} of each")


def _check_samples(settings: SiteSettings, data: SiteData, own: OwnSilos, n_nodes: int) -> None:
    """With gaps it is the pair that counts whose numbers rest on the fewest rows: its sum hides no more than these."""
    read, least = own.read, settings.least_samples(n_nodes)
    fewest = np.array([one.fewest_rows or 0 for one in read])
    n_samples = int(fewest.sum())
    if any(one.present is not None for one in read):
        has = _presence(read, own.silos[0].study_pairs).astype(np.float64)
        together = has.T @ (fewest[:, None] * has)  # rows of the tables that have both nodes
        n_samples = int(together[has.T @ has > 0].min(initial=n_samples))
    if n_samples < least:
        known = "no number of" if read[0].n_samples is None else n_samples
        gaps = " for a pair of nodes" if n_samples < sum(one.n_samples or 0 for one in read) else ""
        raise Refused("samples", f"{data.place}: has {known} samples{gaps}, the least is {least}")
