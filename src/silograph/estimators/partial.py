"""PartialCorrelationGraph: the scikit-learn façade of signed partial correlations."""

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from silograph._util.types import Matrix, Vector
from silograph.analysis.partial.judgement import Judgement, judge
from silograph.analysis.partial.learn import learn_partial
from silograph.analysis.partial.sums import SiloSums, sums_of
from silograph.data.blocks import moments_of_blocks
from silograph.data.moments import Moments
from silograph.data.readers.frames import is_frame
from silograph.errors import ParameterError, SignalError
from silograph.estimators.tables import Table, tables_of
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs, endpoints
from silograph.graph.strongest import keep_strongest
from silograph.local.degree import check_degree, default_degree


class PartialCorrelationGraph(BaseEstimator):
    """Learn each silo's partial correlations and those that silos share, with their signs.

    A second opinion beside `ConsensusGraph`, whose weights are ≥ 0. Each silo's covariance is shrunk towards the one
    that silos share, and that towards the identity: ``A_i = (N_i S_i + ν_i T) / (N_i + ν_i)``. How much, rows decide
    that are held out, block after block, by their Gaussian likelihood. There may be fewer samples than nodes. The
    silos' covariances are added up in this process.

    Parameters
    ----------
    degree : float, optional
        Mean number of neighbours in `graphs_` and `consensus_graph_`, which keep the strongest pairs by size and of
        every node one. By default as for `SmoothGraph`. Partial correlations are of all pairs, whatever the degree.
    standardize : bool
        Scale each node to unit variance in each silo before silos are put together. Without, amplitudes that differ
        between silos count: better where they are truly alike.
    missing : {"error", "rows"}
        What to do about gaps (NaN): refuse them, or leave their rows out.

    Attributes
    ----------
    partial_correlations_ : ndarray (silos, nodes, nodes)
        Each silo's, with signs; one on the diagonal. Their sizes rank pairs.
    consensus_ : ndarray (nodes, nodes)
        Those of what silos share.
    graphs_, consensus_graph_ : dict of str to Graph, and Graph
        The strongest pairs; weights are sizes, as those of a `Graph` are positive.
    adjacencies_, consensus_adjacency_ : ndarray (silos, nodes, nodes) and (nodes, nodes)
        The same pairs as matrices, with signs.
    shrinkage_ : ndarray (silos,)
        Which part of each silo's covariance is the shared one: 1 for a single silo.
    ridge_ : float
        Which part of the shared covariance is the identity.
    log_likelihood_ : ndarray (silos,)
        Of a row that was held out, in the mean, after each node was scaled.
    judgement_ : Judgement
        Whether the smooth model is the wrong one for these data: what held-out rows gain where partial correlations may
        be negative (`gain`, `error`, `is_wrong`), and `says` in words. Computed when it is asked for.
    silo_names_, n_samples_seen_, rows_dropped_ : list
        Names, samples per silo, and rows that were left out for their gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from silograph import PartialCorrelationGraph
    >>> rng = np.random.default_rng(0)
    >>> driver = rng.normal(size=(2, 200, 1))
    >>> noise = rng.normal(size=(2, 200, 4))
    >>> silos = driver * [1, -1, 0, 0] + noise  # the first two nodes pull in opposite directions
    >>> model = PartialCorrelationGraph(degree=1).fit({"oslo": silos[0], "lima": silos[1]})
    >>> bool(model.consensus_[0, 1] < -0.4)
    True
    >>> model.judgement_.is_wrong
    True
    """

    def __init__(
        self, degree: float | None = None, *, standardize: bool = True, missing: Literal["error", "rows"] = "error"
    ) -> None:
        self.degree, self.standardize, self.missing = degree, standardize, missing

    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn from several tables (samples, nodes): a list, a dict by silo name, or one table and `groups`.

        One table without `groups` is one silo. Tables are arrays or pandas or polars frames; frames are aligned by
        column name. `y` is ignored.
        """
        if self.missing not in ("error", "rows"):
            raise ParameterError(f"missing: expected 'error' or 'rows', got {self.missing!r}.")
        is_one = groups is None and (is_frame(X) or getattr(X, "ndim", 0) == 2)
        tables = tables_of([X] if is_one else X, groups, square=False, missing=self.missing)
        names, n_nodes = tables[0].names, len(tables[0].names)
        pairs = Pairs.all(n_nodes)
        degree = default_degree(pairs) if self.degree is None else self.degree
        check_degree(degree, pairs)
        blocks = {table.silo: _blocks(table, pairs) for table in tables}
        self._silos: tuple[SiloSums, ...] = sums_of(blocks, names, standardize=self.standardize)
        learned = self._learned = learn_partial(self._silos)
        self.partial_correlations_, self.consensus_ = learned.own, learned.consensus
        self.shrinkage_ = learned.shrinkage.parts([silo.whole() for silo in self._silos])
        self.ridge_, self.log_likelihood_ = learned.shrinkage.ridge, learned.shrinkage.log_likelihood
        self.silo_names_ = [table.silo for table in tables]
        self.n_samples_seen_ = [len(table.values) for table in tables]
        self.rows_dropped_ = [table.rows_dropped for table in tables]
        self.n_features_in_ = n_nodes
        self.feature_names_in_ = np.array(names, dtype=object)
        self.graphs_ = {
            name: graph_on(pairs, _strongest(pairs, matrix, degree), names)
            for name, matrix in zip(self.silo_names_, learned.own, strict=True)
        }
        self.consensus_graph_ = graph_on(pairs, _strongest(pairs, learned.consensus, degree), names)
        if any(self.rows_dropped_):
            told = ", ".join(f"{table.silo}: {table.rows_dropped}" for table in tables if table.rows_dropped)
            warnings.warn(f"Rows with gaps were left out ({told}).", UserWarning, stacklevel=2)
        return self

    @property
    def adjacencies_(self) -> Matrix:
        """The strongest partial correlations of each silo (silos, nodes, nodes)."""
        check_is_fitted(self, "graphs_")
        kept = zip(self.graphs_.values(), self.partial_correlations_, strict=True)
        return np.array([_signed(graph, matrix) for graph, matrix in kept])

    @property
    def consensus_adjacency_(self) -> Matrix:
        """The strongest partial correlations of what silos share (nodes, nodes)."""
        check_is_fitted(self, "graphs_")
        return _signed(self.consensus_graph_, self.consensus_)

    @property
    def judgement_(self) -> Judgement:
        """Whether the smooth model is the wrong one."""
        check_is_fitted(self, "graphs_")
        return judge(self._silos, self._learned.shrinkage)


def _blocks(table: Table, pairs: Pairs) -> list[Moments]:
    """Gaps are gone, so these are plain moments."""
    if len(table.values) < 2:
        raise SignalError(f"{table.silo}: expected at least 2 rows without gaps, got {len(table.values)}.")
    return [part for part in moments_of_blocks(table.values, pairs) if isinstance(part, Moments)]


def _strongest(pairs: Pairs, matrix: Matrix, degree: float) -> Vector:
    return keep_strongest(pairs, np.abs(matrix[endpoints(pairs.n_nodes)]), degree)


def _signed(graph: Graph, matrix: Matrix) -> Matrix:
    return np.asarray(np.sign(matrix) * graph.adjacency())
