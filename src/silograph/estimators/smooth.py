"""SmoothGraph: the scikit-learn façade of one-silo learning."""

import warnings
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from silograph._util.types import Matrix
from silograph.data.costs import Missing, check_missing, without_gaps
from silograph.data.distances import costs_of_distances
from silograph.data.moments import Moments
from silograph.data.pairwise import AnyMoments, add_rows, moments_of
from silograph.data.ranks import check_transform, normal_scores, transform_of
from silograph.data.readers.checks import check_finite
from silograph.data.readers.frames import check_index, frame_names, is_frame
from silograph.data.tiles import CostTiles, node_moments
from silograph.errors import DegreeWarning, ParameterError
from silograph.estimators.tables import check_input
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs, default_names
from silograph.local.large import LARGE, learn_large, stores_no_costs
from silograph.local.learn import (
    LearnResult,
    Settings,
    SolverName,
    convergence_warning,
    degree_warning,
    graph_of,
    learn,
    worth_telling,
)
from silograph.local.scores import pair_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KEEPS_NONE = (
    f"of {LARGE} nodes or more, which keeps none. Use graph_, and fit all samples at once; or, with memory for a few "
    "numbers per pair of nodes, set neighbours=0"
)


class SmoothGraph(BaseEstimator):
    """Learn the graph on which signals are smooth, exactly, from samples × nodes.

    Solves ``min over w ≥ 0 of zᵀw/N + 2β‖w‖² − α Σ log(degree + ζ)``, z being the squared distances between the
    nodes' signals, to a certified duality gap.

    Parameters
    ----------
    degree : float, optional
        Mean number of neighbours to learn; α and β follow from it, and the graph does not depend on the data's units.
        By default 5, or 3 up to 15 nodes, but at most half of what is possible.
    alpha, beta : float, optional
        The model's own parameters, both or neither; not together with `degree`.
    standardize : bool
        Centre each node and scale it to unit variance first. For nodes of different units or amplitudes.
    ranks : bool
        Make normal scores of each node's values first: Φ⁻¹((rank − ½)/n), ties having their mean rank,
        then unit variance. For ordinal items, heavy tails and outliers; what `standardize` does is in it.
    solver : {"newton", "gradient"}
        The exact dual Newton method, or the paper's accelerated projected gradient.
    tol : float
        Relative duality gap at which to stop.
    zeta : float
        Added to each degree under the logarithm; above 0, nodes may stay isolated.
    metric : {"sqeuclidean", "precomputed"}
        With "precomputed", `fit` takes a symmetric matrix (nodes, nodes) of mean squared differences.
    missing : {"error", "rows", "pairs"}
        What to do about gaps (NaN): refuse them, leave their rows out, or take each pair's mean over the rows that have
        both.
    allowed, forbidden : array-like of shape (n, 2), optional
        Pairs of node names or positions: the only ones that may be edges, or the ones that may not (known zeros).
    neighbours : int, optional
        How many nearest neighbours per node to try first when nodes are many; the result stays exact. From 10 000 nodes
        on no costs of pairs are stored then, if all pairs are allowed and `missing` is not "pairs". 0: never.
    max_iter : int, optional
        Most iterations of one solve.
    step, momentum : float
        η and ξ of the gradient method; without a step, it backtracks.

    Attributes
    ----------
    graph_ : Graph
        The learned graph, with names.
    adjacency_ : ndarray (nodes, nodes), or from 10 000 nodes on a scipy.sparse.csr_array
        Its weights; built anew at each access.
    scores_ : ndarray (nodes, nodes)
        Weights where there is an edge, and below 0 how far an absent edge is from being one; −∞ where none may be.
        Not where costs are not stored: from 10 000 nodes on, unless `neighbours` is 0.
    gap_ : float
        Certified relative duality gap: no graph has an objective lower by more than this part.
    objective_, n_iter_, converged_, degree_, alpha_, beta_
        Value reached, iterations of the last solve, whether `tol` was met, mean degree got, parameters used.
    n_samples_seen_ : int
        Number of samples (absent with precomputed distances).
    rows_dropped_ : int
        Number of rows that were left out for their gaps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from silograph import SmoothGraph
    >>> X = load_diabetes(as_frame=True).data
    >>> model = SmoothGraph(degree=3).fit(X)
    >>> model.graph_
    Graph(10 nodes, 15 edges)
    >>> model.gap_ <= 1e-8
    True
    """

    def __init__(
        self,
        degree: float | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        *,
        standardize: bool = False,
        ranks: bool = False,
        solver: SolverName = "newton",
        tol: float = 1e-8,
        zeta: float = 0.0,
        metric: Literal["sqeuclidean", "precomputed"] = "sqeuclidean",
        missing: Missing = "error",
        allowed: ArrayLike | None = None,
        forbidden: ArrayLike | None = None,
        neighbours: int | None = None,
        max_iter: int | None = None,
        step: float | None = None,
        momentum: float = 0.9,
    ) -> None:
        self.degree, self.alpha, self.beta, self.zeta = degree, alpha, beta, zeta
        self.standardize, self.metric, self.allowed, self.forbidden = standardize, metric, allowed, forbidden
        self.solver, self.tol, self.max_iter, self.neighbours = solver, tol, max_iter, neighbours
        self.step, self.momentum, self.missing, self.ranks = step, momentum, missing, ranks

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table (samples, nodes), an array or a pandas or polars frame; `y` is ignored."""
        settings = self._settings()
        self.rows_dropped_ = 0
        values, names = self._validate(X, reset=True)
        pairs = self._pairs(names)
        self._names = names
        self._moments: AnyMoments | None = None
        if self.metric == "precomputed":
            check_index(X, names)
            if self.standardize:
                raise ParameterError("standardize: precomputed distances cannot be standardised. Leave it False.")
            cost = costs_of_distances(values, pairs, names)
            return self._keep(learn(cost, pairs, settings), settings)
        values = self._without_gaps(values)
        if self.ranks:
            values = normal_scores(values)
        scaled = self.standardize or self.ranks
        self.n_samples_seen_ = values.shape[0]
        if self.missing != "pairs" and stores_no_costs(pairs, settings):
            nodes = node_moments(pairs.n_nodes)
            nodes.update(values)
            tiles = CostTiles.of(values, nodes, standardize=scaled, names=names)
            return self._keep(learn_large(tiles, settings), settings)
        moments = moments_of(values, pairs)
        cost = moments.costs(standardize=scaled, names=names)
        self._moments = moments
        return self._keep(learn(cost, pairs, settings), settings)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add samples to those seen so far, and learn from all of them, starting at the last solution."""
        settings = self._settings()
        if self.metric == "precomputed":
            raise ParameterError("metric: precomputed distances cannot be added to. Use fit.")
        if self.ranks:
            raise ParameterError("ranks: samples that come change the ranks of those before. Use fit with all.")
        moments: AnyMoments | None = getattr(self, "_moments", None)
        first = moments is None
        if first and hasattr(self, "_learned") and not self._learned.whole:
            raise ParameterError(f"partial_fit: expected a fit that keeps sums of all pairs, got one {KEEPS_NONE}.")
        values, names = self._validate(X, reset=first, least_samples=1)
        if first:
            self._names, self.rows_dropped_ = names, 0
        values = self._without_gaps(values)
        self._moments = add_rows(Moments(self._pairs(names)) if moments is None else moments, values)
        self.n_samples_seen_ = self._moments.n_samples
        if self.n_samples_seen_ < 2:  # no distance yet
            return self
        cost = self._moments.costs(standardize=self.standardize, names=self._names)
        start = self._learned.y if moments is not None and hasattr(self, "_learned") else None
        return self._keep(learn(cost, self._moments.pairs, settings, start=start), settings)

    @property
    def adjacency_(self) -> "Matrix | csr_array":
        """The weights of the learned graph as a dense matrix; from 10 000 nodes on, a sparse one."""
        return self.graph_.adjacency() if self.graph_.n_nodes < LARGE else self.graph_.to_scipy()

    @property
    def scores_(self) -> Matrix:
        """Every pair's rank: weights of edges, and minus the reduced cost (over q) of pairs without one."""
        check_is_fitted(self, "graph_")
        if not self._learned.whole:
            raise ParameterError(f"scores_: expected a fit that keeps the costs of all pairs, got one {KEEPS_NONE}.")
        problem, solution = self._learned.problem, self._learned.solution
        score = pair_scores(problem, solution.w, solution.y)
        out = np.full((problem.n_nodes, problem.n_nodes), -np.inf)
        rows, cols = problem.pairs.rows, problem.pairs.cols
        out[rows, cols] = score
        out[cols, rows] = score
        return out

    def _settings(self) -> Settings:
        if self.metric not in ("sqeuclidean", "precomputed"):
            raise ParameterError(f"metric: expected 'sqeuclidean' or 'precomputed', got {self.metric!r}.")
        check_missing(self.missing, precomputed=self.metric == "precomputed")
        check_transform(transform_of(self.ranks), precomputed=self.metric == "precomputed")
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def _pairs(self, names: tuple[str, ...]) -> Pairs:
        return choose_pairs(names, allowed=self.allowed, forbidden=self.forbidden, may_isolate=self.zeta > 0)

    def _validate(self, X: Any, *, reset: bool, least_samples: int = 2) -> tuple[Matrix, tuple[str, ...]]:
        X = check_input(X, source="X", gaps=self.missing != "error")
        values: Matrix = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # ours, below, says where
            ensure_min_samples=least_samples,
            ensure_min_features=2 if reset else 1,  # later, a wrong number of nodes is the clearer complaint
        )
        names = frame_names(X) if is_frame(X) else default_names(values.shape[1])
        check_finite(values, names, source="signals", gaps=self.missing != "error")
        return values, names

    def _without_gaps(self, values: Matrix) -> Matrix:
        """The rows to learn from; says how many are not."""
        if self.missing == "rows":
            values, dropped = without_gaps(values)
            self.rows_dropped_ += dropped
            if dropped:
                warnings.warn(f"{dropped} rows have gaps and were left out.", UserWarning, stacklevel=3)
        elif gaps := int(np.isnan(values).sum()):
            warnings.warn(f"{gaps} cells are empty: a pair has the rows that have both.", UserWarning, stacklevel=3)
        return values

    def _keep(self, learned: LearnResult, settings: Settings) -> Self:
        solution = learned.solution
        self._learned = learned
        self.graph_ = graph_of(learned, self._names)
        self.gap_ = solution.relative_gap
        self.objective_ = solution.primal
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.degree_ = learned.degree
        self.alpha_ = learned.alpha
        self.beta_ = learned.beta
        if not solution.converged:
            warnings.warn(convergence_warning(learned, settings), ConvergenceWarning, stacklevel=3)
        if worth_telling(learned, settings):
            warnings.warn(degree_warning(learned), DegreeWarning, stacklevel=3)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags
