"""ConsensusGraph: the scikit-learn façade of learning from several silos."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from silograph._util.types import Matrix, Vector
from silograph.analysis.choosing import chooses_coupling, learn_study
from silograph.analysis.graphs import doubts_about_study
from silograph.analysis.newcomers import check_newcomers, leave_out, rows_to_halve
from silograph.analysis.quorum import is_stable, quorum
from silograph.analysis.scores import StudyScores, has_scores, scores_of
from silograph.analysis.stability import GraphStability, StudyStability, check_stability, study_stability
from silograph.analysis.tables import TableFacts, doubts_about_tables, facts_of
from silograph.data.blocks import fit_in_memory, moments_of_blocks
from silograph.data.bounded import RowBounds
from silograph.data.costs import Missing, TableCosts, check_missing, table_costs
from silograph.data.distances import costs_of_distances
from silograph.data.pairwise import moments_of
from silograph.data.ranks import check_transform, normal_scores, transform_of
from silograph.data.serial import serial_correlation
from silograph.engine.noise import with_min_samples
from silograph.engine.study import convergence_warning, degree_warning, nodes_warning
from silograph.errors import DegreeWarning, DoubtfulSilosWarning, NodesWarning, ParameterError
from silograph.estimators.tables import Table, newcomer_of, tables_of
from silograph.graph.allowed import choose_pairs
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.methods.common.privacy import SETTINGS as PRIVACY_SETTINGS
from silograph.methods.common.privacy import privacy_of
from silograph.methods.common.settings import StudySettings
from silograph.privacy.reading import check_reading, row_bounds
from silograph.privacy.statement import statement_of
from silograph.protocol.silo import Silo
from silograph.runs.consensus import fixed_consensus
from silograph.runs.placing import Newcomer, place


class ConsensusGraph(BaseEstimator):
    """Learn each silo's own graph and the consensus graph of what they share, without pooling their signals.

    Solves the model of *Graph Learning Across Data Silos*,
    ``min over w_i, u ≥ 0 of Σ_i [g_i(w_i) + ρ‖w_i − u‖] + λ‖u‖₁`` with ``ρ = λν`` and each silo's own
    ``g(w) = zᵀw/N + 2β‖w‖² − α Σ log(degree + ζ)``: by default exactly, to a certified duality gap.

    Parameters
    ----------
    degree : float, optional
        Mean number of neighbours in each silo's graph and in the consensus: of the optimum's edges these are the
        strongest, and of every node one. `scores_` ranks all pairs. By default as for `SmoothGraph`. Of "independent"
        the mean over silos, of "oneshot" and "pooled" that of the graph of all silos together, and α and β follow; by
        default 8. Of gradient steps, what silos would have alone.
    coupling : float or "auto", optional
        How strongly silos are drawn together: 0 not at all; around 1 their graphs fuse, one by one. "auto" chooses it
        by rows that are held out, which takes about twelve times as long. It is the default of "exact" where there are
        rows, no `epsilon`, and at most 2²² pairs over all silos; elsewhere that is 0.5.
    sparsity : float, optional
        How sparse the consensus is: 0 not at all, from 1 on it is empty. By default 0.1. Of "oneshot", λ/I in units of
        the median pooled cost; by default 0.
    alpha, beta : float, optional
        The model's own α and β instead of `degree`, both or neither; graphs are then the whole optimum.
    nu, lam : float, optional
        The model's own ν and λ instead of `coupling` and `sparsity`; both or neither.
    standardize : bool
        Centre each node and scale it to unit variance first, in each silo. For nodes of different units or amplitudes.
    ranks : bool
        Make normal scores of each node's values first, in each silo: Φ⁻¹((rank − ½)/n), ties having their
        mean rank, then unit variance. For ordinal items, heavy tails and outliers; what `standardize` does is in it.
    method : {"exact", "oneshot", "algorithm1", "independent", "pooled", "fedavg", "fedprox", "mrmtl", "ditto"}
        The exact optimum of the model; the consensus from one sum, and each silo's own graph at home; the paper's
        Algorithm 1; each silo alone; one graph for all; the papers' federated baselines.
    tol : float
        Certified relative duality gap at which to stop.
    solver : {"newton", "gradient"}, optional
        For "independent", "mrmtl" and "ditto": the exact optimum, or the papers' gradient steps.
    rounds : int, optional
        Rounds of the gradient methods (the paper's T, 50), or the most that an exact method may take (200).
    local_steps : int, sequence or mapping of int
        Gradient steps per round, the paper's K; one number, or one per silo.
    step : float or "lipschitz", optional
        The paper's step η; by default 0.005/α. "lipschitz" takes 1/L_i in Algorithm 1.
    momentum : float
        The paper's ξ.
    zeta : float, optional
        Added to each degree under the logarithm; by default 0, or the paper's 0.5 for gradient steps.
    cost_unit : float, optional
        The power of two in which mean squared differences are added up. By default 1, or one that fits where 1 does
        not: signals of about 1e-6 or 1e6.
    pull : float, optional
        Strength μ of "oneshot", FedProx, MRMTL and Ditto, in units of 4β; by default 1, or of "oneshot" what each silo
        chooses by rows that it holds out.
    sums : {1, 2, 3}
        Sums that "oneshot" opens: from the second on, silos count by how near they are to the consensus.
    weights : {"adaptive", "equal"}
        Contribution weights that follow the data, or the paper's ablation, for "exact" and "algorithm1".
    fresh, gamma_cap
        Safe options of Algorithm 1: weights from the newest graphs, and a bound on them relative to their mean.
    gamma_epsilon, first_weight : float
        Algorithm 1's ε_γ, which keeps γ finite, and w⁰, at which all gradient methods start.
    options : dict, optional
        Settings that only a method of your own has.
    missing_nodes : {"error", "allow"}
        Whether silos may lack nodes that others have, for "exact", "oneshot", "independent" and "pooled". With "allow",
        frames are aligned by name to all columns together, and a column that is constant or empty (NaN) throughout is
        missing too. Each silo then learns on its own nodes.
    missing : {"error", "rows", "pairs"}
        What to do about other gaps (NaN): refuse them, leave their rows out, or take each pair's mean over the rows
        that have both.
    metric : {"sqeuclidean", "precomputed"}
        With "precomputed", tables are symmetric matrices (nodes, nodes) of mean squared differences.
    allowed, forbidden : array-like of shape (n, 2), optional
        Pairs of node names or positions: the only ones that may be edges, or the ones that may not.
    epsilon, delta : float, optional
        Add noise, so that the consensus is (ε, δ)-differentially private; both or neither. Rows are brought to a length
        that everybody knows first. Of "oneshot" and "pooled" the one sum carries the noise, and silos' own graphs are
        made of exact data, outside the guarantee. With all other methods each silo's own numbers carry it, and with
        them its graph. Needs the extra `privacy`.
    unit : {"row", "table"}
        What may be replaced without showing: a row, or a whole table, where each is a person's.
    rows : "unit" or float
        Bring each row to length 1, or cut it to a length that is public, where amplitudes matter.
    collusion : int
        Silos that may tell their share of the noise; each knows its own.
    masked : bool, optional
        Whether silos add shares of the noise, as sites do whose sums are masked, or each adds all of it. By default
        shares for methods that open one sum; others have none.
    min_samples : int, optional
        Rows that every table has at least, which everybody may know; by default those of the smallest table.
    centres, scales : sequence of float, optional
        Public numbers, one per node: with `epsilon`, `standardize` subtracts and divides by these.
    whole : bool
        Keep all edges of the optimum. α and β then follow from `degree`, as that of silos alone: as between sites.
    stability : int
        Number of half-samples of the rows, even, such as 50: how often each edge is found again. 0: none.
    newcomers : bool
        Leave each silo out once, so that `place` can tell whether a newcomer is usual.
    report : bool
        Whether silos may tell their own numbers, such as `contributions_`.
    warm_start : bool
        Start at the consensus of the last fit: for paths of couplings.
    n_jobs : int, optional
        Threads; by default one per core.

    Attributes
    ----------
    graphs_ : dict of str to Graph
        Each silo's graph, on the nodes that it has.
    consensus_graph_ : Graph
        What they share.
    adjacencies_, consensus_ : ndarray (silos, nodes, nodes) and (nodes, nodes)
        The same, dense; built anew at each access. NaN where the silo, or every silo, lacks one of the two nodes: there
        nothing was learned, while 0 says that there is no edge.
    scores_, consensus_scores_ : ndarray (silos, nodes, nodes) and (nodes, nodes)
        A rank for every pair, of exact methods without `epsilon`: the weight where there is an edge, a negative number
        where there is none: how far the pair is from being one. −inf where a pair may be no edge, NaN where nothing is
        known.
    stability_ : StudyStability
        With `stability`: frequency, mean weight and interval of every pair, and strengths of nodes, for the consensus
        and each silo; `stabilities_` (silos, nodes, nodes) and `consensus_stability_` are the frequencies.
    coupling_ : float or None
        The coupling that was given or chosen; `coupling_curve_` are the couplings tried, and their held-out losses.
    contributions_ : ndarray (silos,)
        The paper's γ = 1/‖w_i − u‖: the nearer a silo's graph is to the consensus, the more it contributed. Infinite
        where it *is* the consensus.
    shares_ : ndarray (silos,)
        Contributions as parts of one; silos whose graph is the consensus share it alike.
    gap_ : float
        Certified relative duality gap of the joint problem, of "oneshot" of the consensus; NaN for methods that have
        none.
    pulls_, personal_gaps_ : ndarray (silos,)
        Of method "oneshot": each silo's pull to the consensus, in units of 4β, and the gap of its own graph.
    history_ : list of dict
        One record per round: objective, bound, gap, number of fused silos.
    objective_, converged_, n_rounds_, n_setup_rounds_
        Value reached, whether `tol` was met, exchanges of the method, and of the set-up before it.
    alpha_, beta_, nu_, lam_, rho_, degree_, degree_alone_
        Parameters used, the mean degree of the silos' graphs, and what silos alone would have at α and β.
    optimum_degree_ : float
        The mean degree of the whole optimum, of which graphs are the strongest edges.
    privacy_ : Statement or None
        With `epsilon`: the guarantee in numbers (`multiplier` σ₁, `rho`) and in words (`says`).
    doubts_ : tuple of Doubt
        What is doubtful of which silos, as the warnings say it: kind, silos, text.
    silo_names_, n_samples_seen_ : list
        Names, and samples per silo (None with precomputed distances).
    rows_dropped_ : list
        Rows per silo that were left out for their gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from silograph import ConsensusGraph
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(300, 8)).cumsum(axis=1)
    >>> silos = {name: common[part] + 0.1 * rng.normal(size=(100, 8))
    ...          for name, part in [("oslo", slice(0, 100)), ("lima", slice(100, 200)), ("kyoto", slice(200, 300))]}
    >>> model = ConsensusGraph(degree=3).fit(silos)
    >>> model.graphs_["lima"].n_nodes, model.gap_ <= 1e-6
    (8, True)
    """

    def __init__(
        self,
        degree: float | None = None,
        coupling: float | Literal["auto"] | None = None,
        sparsity: float | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        nu: float | None = None,
        lam: float | None = None,
        *,
        standardize: bool = False,
        ranks: bool = False,
        method: str = "exact",
        tol: float = 1e-6,
        solver: Literal["newton", "gradient"] | None = None,
        rounds: int | None = None,
        local_steps: int | Sequence[int] | Mapping[str, int] = 5,
        step: float | Literal["lipschitz"] | None = None,
        momentum: float = 0.9,
        zeta: float | None = None,
        cost_unit: float | None = None,
        pull: float | None = None,
        weights: Literal["adaptive", "equal"] = "adaptive",
        fresh: bool = False,
        gamma_cap: float | None = None,
        gamma_epsilon: float = 1e-8,
        first_weight: float = 0.1,
        sums: int = 1,
        options: Mapping[str, Any] | None = None,
        missing_nodes: Literal["error", "allow"] = "error",
        missing: Missing = "error",
        metric: Literal["sqeuclidean", "precomputed"] = "sqeuclidean",
        allowed: ArrayLike | None = None,
        forbidden: ArrayLike | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: Literal["row", "table"] = "row",
        rows: Literal["unit"] | float = "unit",
        collusion: int = 1,
        masked: bool | None = None,
        min_samples: int | None = None,
        centres: Sequence[float] | None = None,
        scales: Sequence[float] | None = None,
        whole: bool = False,
        stability: int = 0,
        newcomers: bool = False,
        report: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.degree, self.coupling, self.sparsity = degree, coupling, sparsity
        self.alpha, self.beta, self.nu, self.lam = alpha, beta, nu, lam
        self.standardize, self.metric, self.allowed, self.forbidden = standardize, metric, allowed, forbidden
        self.ranks = ranks
        self.method, self.tol, self.solver, self.rounds = method, tol, solver, rounds
        self.local_steps, self.step, self.momentum = local_steps, step, momentum
        self.zeta, self.cost_unit, self.pull, self.weights, self.fresh = zeta, cost_unit, pull, weights, fresh
        self.gamma_cap, self.gamma_epsilon, self.first_weight = gamma_cap, gamma_epsilon, first_weight
        self.sums, self.options, self.missing_nodes = sums, options, missing_nodes
        self.missing = missing
        self.epsilon, self.delta, self.unit, self.rows, self.collusion = epsilon, delta, unit, rows, collusion
        self.masked, self.min_samples, self.centres, self.scales = masked, min_samples, centres, scales
        self.whole, self.stability, self.newcomers = whole, stability, newcomers
        self.report, self.warm_start, self.n_jobs = report, warm_start, n_jobs

    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn from several tables (samples, nodes): a list, a dict by silo name, or one table and `groups`.

        Tables are arrays or pandas or polars frames; frames are aligned by column name. `y` is ignored.
        """
        settings = self._settings()
        some = settings.may_lack_nodes
        square = self.metric == "precomputed"
        tables = tables_of(X, groups, square=square, missing_nodes=some, missing=self.missing)
        if self.ranks:
            tables = [replace(table, values=normal_scores(table.values)) for table in tables]
        names = tables[0].names
        pairs = choose_pairs(names, allowed=self.allowed, forbidden=self.forbidden, may_isolate=settings.zeta_used > 0)
        bounds = row_bounds(settings.privacy, names)
        check_stability(self.stability, settings, has_rows=not square)
        chooses = chooses_coupling(settings, n_silos=len(tables), pairs=pairs, has_rows=not square)
        if self.newcomers:
            check_newcomers(settings, len(tables))
        hold = settings.holds_out or chooses or self.stability > 0 or self.newcomers
        silos, facts = zip(*(self._silo(table, pairs, bounds, blocks=hold) for table in tables), strict=True)
        settings = with_min_samples(settings, silos)
        self._give_steps(silos)
        start = self._start(pairs, names)
        study = learn_study(silos, settings, nodes=names, start=start, whole=self.whole, workers=self._workers())
        self._study, self._pairs = study, pairs
        self._scores = scores_of(silos, settings, study) if has_scores(settings) else None
        self._stability: StudyStability | None = None
        if self.stability:
            self._stability = study_stability(silos, settings, study, self.stability, workers=self._workers())
        self._fixed = fixed_consensus(
            study,
            settings,
            pairs,
            nodes=names,
            silos={silo.name: 1 for silo in silos},
            options={"standardize": self.standardize, "transform": transform_of(self.ranks)},
            left_out=leave_out(silos, settings, study, workers=self._workers()) if self.newcomers else (),
            rows=rows_to_halve(silos),
        )
        self.silo_names_ = [silo.name for silo in silos]
        self.n_samples_seen_ = [silo.n_samples for silo in silos]
        self.rows_dropped_ = [table.rows_dropped for table in tables]
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.graphs_ = {name: graph_on(pairs, w, names, study.nodes[name]) for name, w in study.graphs.items()}
        self.consensus_graph_ = graph_on(pairs, study.consensus, names)
        self.objective_, self.gap_, self.converged_ = study.objective, study.gap, study.converged
        self.n_rounds_, self.n_setup_rounds_ = study.n_rounds, study.n_setup_rounds
        self.history_ = [dict(record) for record in study.history]
        self.alpha_, self.beta_, self.nu_, self.lam_, self.rho_ = (
            study.alpha,
            study.beta,
            study.nu,
            study.lam,
            study.rho,
        )
        self.degree_, self.degree_alone_ = study.degree, study.degree_alone
        self.optimum_degree_ = study.degree if study.optimum is None else study.optimum.degree
        self.coupling_, self.coupling_curve_ = study.coupling, list(study.coupling_curve)
        self.privacy_ = statement_of(settings.privacy, graphs_inside=settings.graphs_inside)
        self.doubts_ = (
            *doubts_about_tables(facts, standardize=self._scaled),
            *doubts_about_study(study, self.silo_names_, self.graphs_, self.consensus_graph_, pairs),
        )
        if any(self.rows_dropped_):
            told = ", ".join(f"{table.silo}: {table.rows_dropped}" for table in tables if table.rows_dropped)
            warnings.warn(f"Rows with gaps were left out ({told}).", UserWarning, stacklevel=2)
        if any(fact.gaps for fact in facts):
            told = ", ".join(f"{fact.name}: {fact.gaps}" for fact in facts if fact.gaps)
            warnings.warn(f"Cells are empty ({told}): a pair has the rows that have both.", UserWarning, stacklevel=2)
        for doubt in self.doubts_:
            warnings.warn(doubt.text, DoubtfulSilosWarning, stacklevel=2)
        trouble = convergence_warning(study, settings)
        if trouble is not None:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        missed = degree_warning(study, settings)
        if missed is not None:
            warnings.warn(missed, DegreeWarning, stacklevel=2)
        lonely = nodes_warning(study, pairs)
        if lonely is not None:
            warnings.warn(lonely, NodesWarning, stacklevel=2)
        return self

    @property
    def adjacencies_(self) -> Matrix:
        """Each silo's weights as a dense matrix (silos, nodes, nodes)."""
        check_is_fitted(self, "graphs_")
        out = np.full((len(self.graphs_), self.n_features_in_, self.n_features_in_), np.nan)
        for matrix, (name, graph) in zip(out, self.graphs_.items(), strict=True):
            own = self._nodes(name)
            matrix[np.ix_(own, own)] = graph.adjacency()
        return out

    @property
    def consensus_(self) -> Matrix:
        """The consensus' weights as a dense matrix."""
        check_is_fitted(self, "graphs_")
        out, together = self.consensus_graph_.adjacency(), np.zeros((self.n_features_in_,) * 2, dtype=bool)
        for name in self.graphs_:
            own = self._nodes(name)
            together[np.ix_(own, own)] = True
        out[~together] = np.nan
        return out

    @property
    def scores_(self) -> Matrix:
        """Each silo's rank of every pair (silos, nodes, nodes)."""
        return np.array([self._dense(w) for w in self._kept_scores().silos.values()])

    @property
    def consensus_scores_(self) -> Matrix:
        """The consensus' rank of every pair (nodes, nodes)."""
        return self._dense(self._kept_scores().consensus)

    @property
    def stability_(self) -> StudyStability:
        """How stable all edges are."""
        check_is_fitted(self, "graphs_")
        if self._stability is None:
            raise AttributeError("stability_ was not asked for. Fit with stability=50, say.")
        return self._stability

    @property
    def stabilities_(self) -> Matrix:
        """In which part of half-samples each pair is an edge of a silo's graph (silos, nodes, nodes)."""
        return np.array([self._dense(self.stability_.silos[name].frequency, 0.0) for name in self.silo_names_])

    @property
    def consensus_stability_(self) -> Matrix:
        """In which part of half-samples each pair is an edge of the consensus (nodes, nodes)."""
        return self._dense(self._told(None).frequency, 0.0)

    def stable_graph(self, threshold: float = 0.9, silo: str | None = None) -> Graph:
        """The edges of the consensus, or of a silo, that at least this part of half-samples has."""
        told = self._told(silo)
        w = self._study.consensus if silo is None else self._study.graphs[silo]
        own = None if silo is None else self._study.nodes[silo]
        names = tuple(self.feature_names_in_)
        return graph_on(self._pairs, np.where(is_stable(w, told, threshold), w, 0.0), names, own)

    def quorum_graph(self, least: int, threshold: float = 0.9) -> Graph:
        """The edges that are stable in at least so many silos, weighted by their mean there."""
        found = quorum(self._study.graphs, self.stability_.silos, least, threshold)
        return graph_on(self._pairs, found.weights, tuple(self.feature_names_in_))

    def place(self, X: Any) -> Newcomer:
        """The graph of a silo that had no part in the consensus, drawn to it as it is, and how unusual it is.

        `X` is a table (samples, nodes) as `fit` takes them. Whether it is usual is told if `newcomers` was set.
        """
        check_is_fitted(self, "graphs_")
        if self._fixed is None:
            raise ParameterError(
                f"place: {len(self.graphs_)} silos by {self.method!r} leave no consensus beside which another silo has "
                "an exact graph of its own. Fit several silos by an exact method, without epsilon."
            )
        nodes, square = tuple(self.feature_names_in_), self.metric == "precomputed"
        some = self.missing_nodes == "allow"
        table = newcomer_of(X, nodes, square=square, missing_nodes=some, missing=self.missing)
        if self.ranks:
            table = replace(table, values=normal_scores(table.values))
        silo, _ = self._silo(table, self._pairs, None, blocks=True)
        placed = place(silo, self._fixed)
        own = graph_on(self._pairs, silo.spread(placed.shown), nodes, silo.nodes)
        return Newcomer.of(placed, own, self._fixed.record)

    def _told(self, silo: str | None) -> GraphStability:
        told = self.stability_.consensus if silo is None else self.stability_.silos[silo]
        assert told is not None  # all silos are here
        return told

    def _kept_scores(self) -> StudyScores:
        check_is_fitted(self, "graphs_")
        if self._scores is None:
            raise AttributeError(
                "scores_: pairs without an edge are ranked by how far they are from an optimum, which gradient steps "
                "do not reach, and from exact rows, at which epsilon forbids to look."
            )
        return self._scores

    def _dense(self, values: Vector, elsewhere: float = -np.inf) -> Matrix:
        """One number per pair as a matrix; on the diagonal and at pairs that may be no edge, `elsewhere`."""
        out = np.full((self.n_features_in_,) * 2, elsewhere)
        out[self._pairs.rows, self._pairs.cols] = values
        out[self._pairs.cols, self._pairs.rows] = values
        return out

    def _nodes(self, silo: str) -> np.ndarray:
        nodes = self._study.nodes[silo]
        return np.arange(self.n_features_in_) if nodes is None else nodes

    @property
    def contributions_(self) -> Vector:
        """γ of each silo."""
        check_is_fitted(self, "graphs_")
        if not self._study.contributions:
            raise AttributeError("contributions_ stayed in the silos. Allow them to be reported: report=True.")
        return np.array([self._study.contributions[name] for name in self.silo_names_])

    @property
    def pulls_(self) -> Vector:
        """The pull of each silo, in units of 4β, as it was given or chosen; of method "oneshot"."""
        return self._evidence("pull")

    @property
    def personal_gaps_(self) -> Vector:
        """The certified relative gap of each silo's own graph; of method "oneshot"."""
        return self._evidence("gap")

    def _evidence(self, name: str) -> Vector:
        check_is_fitted(self, "graphs_")
        if not all(name in self._study.evidence.get(silo, {}) for silo in self.silo_names_):
            raise AttributeError(f"The method {self.method!r} has no {name} for each silo.")
        return np.array([self._study.evidence[silo][name] for silo in self.silo_names_])

    @property
    def shares_(self) -> Vector:
        """Contributions as parts of one."""
        gamma = self.contributions_
        if np.isinf(gamma).any():
            gamma = np.isinf(gamma).astype(np.float64)
        shares: Vector = gamma / gamma.sum()
        return shares

    def _settings(self) -> StudySettings:
        if self.metric not in ("sqeuclidean", "precomputed"):
            raise ParameterError(f"metric: expected 'sqeuclidean' or 'precomputed', got {self.metric!r}.")
        check_missing(self.missing, precomputed=self.metric == "precomputed")
        check_transform(transform_of(self.ranks), precomputed=self.metric == "precomputed")
        if self.metric == "precomputed" and self.standardize:
            raise ParameterError("standardize: precomputed distances cannot be standardised. Leave it False.")
        given = {field.name: getattr(self, field.name) for field in fields(StudySettings) if hasattr(self, field.name)}
        given["options"] = dict(self.options or {})
        if isinstance(self.local_steps, Sequence | Mapping):
            del given["local_steps"]  # each silo has its own (_give_steps)
        privacy = privacy_of(self.method, {name: getattr(self, name) for name in PRIVACY_SETTINGS})
        check_reading(
            privacy,
            standardize=self.standardize,
            transform=transform_of(self.ranks),
            public=privacy.centres is not None,
            missing=self.missing,
            precomputed=self.metric == "precomputed",
        )
        return StudySettings(**given, privacy=privacy)

    @property
    def _scaled(self) -> bool:
        """Whether nodes have unit variance in the end."""
        return self.standardize or self.ranks

    def _workers(self) -> int | None:
        if self.n_jobs is None or self.n_jobs == -1:
            return None
        if not isinstance(self.n_jobs, int | np.integer) or isinstance(self.n_jobs, bool) or self.n_jobs < 1:
            raise ParameterError(f"n_jobs: expected a whole number ≥ 1, or -1 for all cores, got {self.n_jobs!r}.")
        return int(self.n_jobs)

    def _silo(self, table: Table, pairs: Pairs, bounds: RowBounds | None, *, blocks: bool) -> tuple[Silo, TableFacts]:
        own = pairs if table.present is None else pairs.within(table.present)[0]
        if self.metric == "precomputed":
            cost = costs_of_distances(table.values, own, table.own_names, source=table.silo)
            read = TableCosts(cost=cost, n_samples=None, blocks=None, present=table.present, row_counter=None)
        else:
            keep = blocks and fit_in_memory(own)
            values = table.values
            read = table_costs(
                moments_of(values, own, bounds),
                moments_of_blocks(values, own, bounds) if keep else (),
                standardize=self._scaled,
                names=table.names,
                source=table.silo,
                present=table.present,
                missing_nodes=self.missing_nodes,
                rows_dropped=table.rows_dropped,
            )
            read = replace(read, serial=serial_correlation(table.values))
        about = {"name": table.silo, "cost": read.cost, "n_samples": read.n_samples, "blocks": read.blocks}
        return Silo.on(pairs, read.present, **about), facts_of(table.silo, pairs.n_nodes, read)

    def _give_steps(self, silos: Sequence[Silo]) -> None:
        """Each silo's own K_i, where they differ."""
        if not isinstance(self.local_steps, Sequence | Mapping):
            return
        given = self.local_steps
        names = [silo.name for silo in silos]
        steps = given if isinstance(given, Mapping) else dict(zip(names, given, strict=False))
        if set(steps) != set(names) or len(given) != len(names):
            raise ParameterError(f"local_steps: expected one number for each of {names}, got {given!r}.")
        for silo in silos:
            if not (isinstance(steps[silo.name], int | np.integer) and steps[silo.name] >= 1):
                raise ParameterError(f"local_steps: expected whole numbers ≥ 1, got {steps[silo.name]!r}.")
            silo.local_steps = int(steps[silo.name])

    def _start(self, pairs: Pairs, names: tuple[str, ...]) -> Vector | None:
        if not self.warm_start or not hasattr(self, "_study"):
            return None
        same = pairs.same(self._pairs) and tuple(self.feature_names_in_) == names
        return self._study.whole_consensus if same else None
