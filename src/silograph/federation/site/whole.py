"""All of a site's tables, read from the first row to the last: what a study would find in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from silograph.federation.site.data import SiteData, look_at_data
from silograph.federation.site.settings import SiteSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeData:
    """The tables, and what is in them."""

    data: SiteData
    n_samples: int
    n_gaps: int  # empty cells of nodes that have others
    lacking: tuple[str, ...]  # of the federation's nodes, those of which some table has no value

    @property
    def summary(self) -> str:
        """Size, for people."""
        place = self.data.place if self.data.several else self.data.tables[0].path.name
        return f"{place}: {self.n_samples} samples of {len(self.data.names)} nodes"


def read_whole(settings: SiteSettings, folder: Path, nodes: Sequence[str] | None) -> WholeData:
    """Read all tables once, for the federation's nodes if it has named them; `Refused` names file, row and column."""
    return whole_of(look_at_data(settings, folder), nodes)


def whole_of(data: SiteData, nodes: Sequence[str] | None) -> WholeData:
    """The same of data that were looked at."""
    expected = data.names if nodes is None else nodes
    # Whether some may be missing, each study says
    data.check_nodes(expected, data.tables[0].path.name, missing_nodes="allow", whose="the federation")
    n_samples, n_gaps, empty = 0, 0, set[str]()
    for signals in data.signals():
        gaps, n_rows = np.zeros(signals.n_nodes, dtype=np.int64), 0
        for chunk in signals.chunks(gaps=True):
            gaps, n_rows = gaps + np.isnan(chunk).sum(axis=0), n_rows + chunk.shape[0]
        n_samples, n_gaps = n_samples + n_rows, n_gaps + int(gaps[gaps < n_rows].sum())
        empty |= {name for name, number in zip(signals.names, gaps, strict=True) if number == n_rows}
    lacking = [name for name in expected if name in empty or any(name not in names for names in data.nodes)]
    return WholeData(data=data, n_samples=n_samples, n_gaps=n_gaps, lacking=tuple(lacking))
