"""Nodes that some silos lack: the optimum, its certificate, its invariances, and what a silo sees."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.data.blocks import moments_of_blocks
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.engine.study import learn_silos, nodes_warning, run_identity
from silograph.errors import ParameterError, ProtocolError, SilosError
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common.bounds import shrink_into
from silograph.methods.common.settings import StudySettings
from silograph.methods.exact import ExactSplitting
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import parts_of
from silograph.protocol.silo import Silo, SiloState
from testing.missing_nodes import incidence, joint_optimum, objective, silos_with, some_nodes
from testing.silo_problems import instances, silo_costs, silo_signals

METHODS = (
    {"method": "exact", "coupling": 0.7},
    {"method": "exact", "coupling": 1.5, "sparsity": 0.0},
    {"method": "exact", "coupling": 0.0},
    {"method": "independent"},
    {"method": "pooled"},
    {"method": "oneshot", "sparsity": 0.2},
    {"method": "oneshot", "sums": 3},
    {"method": "oneshot", "pull": 2.0},
)


def allowing(**settings) -> StudySettings:
    return StudySettings(missing_nodes="allow", **settings)


def numbers(*nodes: int) -> np.ndarray:
    return np.array(nodes, dtype=np.int32)


def tables_as_silos(signals, nodes, pairs: Pairs | None = None) -> list[Silo]:
    """Silos with blocks of rows, from tables on all nodes."""
    pairs, silos = pairs or Pairs.all(signals[0].shape[1]), []
    for i, (table, had) in enumerate(zip(signals, nodes, strict=True)):
        own = pairs if had is None else pairs.within(had)[0]
        values = np.ascontiguousarray(table if had is None else table[:, had])
        names = [str(k) for k in range(own.n_nodes)]
        read = table_costs(
            moments_of(values, own), moments_of_blocks(values, own), standardize=False, names=names, source="table"
        )
        about = {"name": f"silo {i}", "cost": read.cost, "n_samples": read.n_samples, "blocks": read.blocks}
        silos.append(Silo.on(pairs, had, **about))
    return silos


def six_silos(seed: int = 3) -> list[Silo]:
    rng = np.random.default_rng(seed)
    return tables_as_silos(silo_signals(rng, "different", 6, 9), some_nodes(rng, 6, 9, silos=0.5, nodes=0.3))


# --- the exact method -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["similar", "different", "groups"])
@pytest.mark.parametrize(
    ("coupling", "sparsity"), [(0.2, 0.1), (0.7, 0.0), (1.0, 0.3), (1.5, 0.1), (3.0, 0.0), (0.5, 1.1)]
)
def test_an_independent_solver_finds_the_same_optimum_and_graphs(rng, kind, coupling, sparsity):
    silos = silos_with(silo_costs(rng, kind, 4, 7), some_nodes(rng, 4, 7, silos=0.5, nodes=0.3))
    study = learn_silos(silos, allowing(coupling=coupling, sparsity=sparsity, tol=1e-12))
    assert study.objective == pytest.approx(objective(study, silos), rel=1e-12)
    model = {"alpha": study.alpha, "beta": study.beta, "rho": study.rho, "lam": study.lam}
    value, u, graphs = joint_optimum(silos, **model)
    assert study.objective == pytest.approx(value, rel=1e-9)
    bound = max(record["bound"] for record in study.history if "bound" in record)
    assert bound <= value + 1e-9 * abs(value)
    np.testing.assert_allclose(study.consensus, u, atol=1e-5)
    theirs = replace(
        study, consensus=u, graphs={silo.name: silo.spread(w) for silo, w in zip(silos, graphs, strict=True)}
    )
    # The objective has curvature q = 4β in all graphs together, so neither point is farther from the optimum than this
    far = sum(np.sqrt(max(objective(one, silos) - bound, 0.0) / (2 * study.beta)) for one in (study, theirs))
    apart = np.concatenate([study.graphs[silo.name] - theirs.graphs[silo.name] for silo in silos])
    assert np.linalg.norm(apart) <= far + 1e-9
    assert np.abs(apart).max() <= 1e-5


def test_missing_nodes_take_hardly_more_rounds():
    rounds = []
    for k, (label, costs, settings) in enumerate(instances(largest=20)):
        n_nodes = round((1 + np.sqrt(1 + 8 * costs[0].size)) / 2)
        silos = silos_with(costs, some_nodes(np.random.default_rng(k), len(costs), n_nodes))
        study = learn_silos(silos, allowing(tol=1e-6, **settings))
        assert study.converged, label
        rounds.append(study.n_rounds)
    assert np.mean(rounds) <= 12  # 10.2 without a missing node
    assert max(rounds) <= 40


@given(
    seed=st.integers(0, 2**32 - 1), coupling=st.floats(0.01, 4), sparsity=st.floats(0, 1.2), n_silos=st.integers(2, 6)
)
def test_the_certificate_is_honest(seed, coupling, sparsity, n_silos):
    """The bound is below every graph that could have been learned, and above the value of any feasible forces."""
    rng = np.random.default_rng(seed)
    silos = silos_with(silo_costs(rng, "different", n_silos, 6), some_nodes(rng, n_silos, 6, silos=0.6, nodes=0.4))
    study = learn_silos(silos, allowing(coupling=coupling, sparsity=sparsity, tol=1e-4))
    if "bound" not in study.history[-1]:  # alike where they share pairs: the pooled graph has another certificate
        assert study.rho == 0
        return
    bound = max(record["bound"] for record in study.history)
    assert study.gap >= 0
    assert objective(study, silos) >= bound - 1e-9 * abs(bound)
    for _ in range(3):
        scale = 10 ** rng.uniform(-6, 0)
        graphs = {name: w * np.exp(scale * rng.normal(size=w.size)) for name, w in study.graphs.items()}
        other = replace(study, graphs=graphs, consensus=study.consensus * np.exp(scale * rng.normal()))
        assert objective(other, silos) >= bound - 1e-9 * abs(bound)
    assert _dual_value(rng, silos, study) <= objective(study, silos) + 1e-9 * abs(bound)


def _dual_value(rng, silos, study) -> float:
    """Σ min g_i(w) + v_iᵀw at random forces with ‖v_i‖ ≤ ρ and Σ v_i ≤ λ_e."""
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    forces = [silo.spread(rng.normal(size=silo.pairs.size)) for silo in silos]
    over = np.maximum(sum(forces) - study.lam * count / len(silos), 0.0) / np.maximum(count, 1)
    total = 0.0
    for silo, force in zip(silos, forces, strict=True):
        own = silo.take(force - over)
        if (feasible := shrink_into(own, study.rho)) is None:
            return -np.inf
        problem = silo.problem(alpha=study.alpha, beta=study.beta, zeta=0.0)
        solution = solve_to_rounding(replace(problem, cost=problem.cost + feasible), None)
        total += solution.primal - solution.gap
    return total


# --- invariances, of every method -------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_a_silo_that_may_lack_nodes_and_does_not_changes_no_bit(settings):
    silos = tables_as_silos(silo_signals(np.random.default_rng(5), "different", 4, 8), [None] * 4)
    study, allowed = learn_silos(silos, StudySettings(**settings)), learn_silos(silos, allowing(**settings))
    np.testing.assert_array_equal(allowed.consensus, study.consensus)
    for name, w in study.graphs.items():
        np.testing.assert_array_equal(allowed.graphs[name], w)
    assert (allowed.rho, allowed.lam, allowed.converged) == (study.rho, study.lam, study.converged)


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_neither_the_order_of_silos_nor_the_numbers_of_nodes_matter(settings):
    rng = np.random.default_rng(8)
    signals, nodes = silo_signals(rng, "different", 5, 8), some_nodes(rng, 5, 8, silos=0.6, nodes=0.3)
    study = learn_silos(tables_as_silos(signals, nodes), allowing(**settings))
    turned = learn_silos(tables_as_silos(signals, nodes)[::-1], allowing(**settings))
    np.testing.assert_array_equal(turned.consensus, study.consensus)
    order = rng.permutation(8)  # node k of the new study is node order[k] of the old one
    new = np.argsort(order)
    moved = [None if had is None else np.sort(new[had]).astype(np.int32) for had in nodes]
    other = learn_silos(tables_as_silos([table[:, order] for table in signals], moved), allowing(**settings))
    square = np.zeros((8, 8), dtype=int)
    rows, cols = np.triu_indices(8, 1)
    square[rows, cols] = square[cols, rows] = np.arange(28)
    relabelled = square[np.ix_(order, order)][rows, cols]
    np.testing.assert_allclose(other.consensus, study.consensus[relabelled], atol=1e-7)
    for name, w in study.graphs.items():
        np.testing.assert_allclose(other.graphs[name], w[relabelled], atol=1e-7)


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_a_node_that_a_silo_lacks_is_not_in_its_graph(settings):
    silos = six_silos()
    study = learn_silos(silos, allowing(**settings))
    assert study.converged
    for silo in silos:
        outside = study.graphs[silo.name].copy()
        if silo.place is not None:
            outside[silo.place] = 0
            assert not outside.any()
            assert len(study.nodes[silo.name]) == 6


def test_a_silo_s_half_sees_its_own_pairs_alone_and_the_coordinator_sends_all(monkeypatch):
    local, tasks = ExactSplitting.local, []

    def watch(method, silo, state, task):
        assert {np.size(part) for name, part in task.parts.items() if name != "mixing"} <= {1, silo.pairs.size}
        tasks.append((method, silo, task))
        return local(method, silo, state, task)

    monkeypatch.setattr(ExactSplitting, "local", watch)
    silos = six_silos()
    learn_silos(silos, allowing(coupling=0.5))
    method, silo, start = next(one for one in tasks if one[1].nodes is not None)
    with pytest.raises(ProtocolError, match="expected shape"):
        answer_task(method, silo, SiloState(), start, report=False)  # what it sees is not what is sent
    whole = replace(start, parts={"u": silo.spread(start.parts["u"])})
    update, _ = answer_task(method, silo, SiloState(), whole, report=False)
    force = parts_of(update)["force"]
    assert force.size == silo.study_pairs.size
    assert not np.delete(force, silo.place).any()


# --- pooled, one-shot, independent ------------------------------------------------------------------------------------


def pooled_by_hand(silos, alpha, beta, lam=0.0) -> tuple[float, np.ndarray]:
    """The pooled problem of means over those who have a pair, by an independent solver."""
    import cvxpy as cp

    from testing.judge import minimum

    pairs = silos[0].study_pairs
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    cost = sum(silo.spread(silo.cost) for silo in silos)
    had = np.flatnonzero(count)
    mean = cost[had] / count[had] + lam / len(silos)
    u = cp.Variable(had.size, nonneg=True)
    value = minimum(mean @ u + 2 * beta * cp.sum_squares(u) - alpha * cp.sum(cp.log(incidence(pairs)[:, had] @ u)))
    full = np.zeros(pairs.size)
    full[had] = u.value
    return value, full


@pytest.mark.parametrize("settings", [{"method": "pooled"}, {"method": "oneshot", "pull": 3.0, "sparsity": 0.3}])
def test_the_pooled_graph_is_that_of_means_over_those_who_have_a_pair(settings):
    silos = six_silos()
    study = learn_silos(silos, allowing(**settings))
    value, u = pooled_by_hand(silos, study.alpha, study.beta, study.lam)
    assert study.objective == pytest.approx(6 * value, rel=1e-6)
    np.testing.assert_allclose(study.consensus, u, atol=1e-4)
    assert study.gap <= 1e-9
    for silo in silos:
        w = silo.take(study.graphs[silo.name])
        if settings["method"] == "pooled":
            np.testing.assert_array_equal(w, silo.take(study.consensus))
            continue
        problem = silo.problem(alpha=study.alpha, beta=study.beta, zeta=0.0)
        pull = 3.0 * 4 * study.beta
        pulled = replace(
            problem, cost=problem.cost - pull * silo.take(study.consensus), quadratic=problem.quadratic + pull
        )
        assert pulled.gap(w, pulled.multipliers(w)) <= 1e-8 * pulled.scale(pulled.value(w))


def test_the_pull_is_chosen_with_a_consensus_that_is_solved_anew_on_all_nodes():
    silos = six_silos()
    study = learn_silos(silos, allowing(method="oneshot"))
    lacking = next(silo for silo in silos if silo.nodes is not None)
    evidence = study.evidence[lacking.name]
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    rest = sum(silo.spread(silo.cost) for silo in silos if silo is not lacking)
    pairs, problem = lacking.study_pairs, lacking.problem(alpha=study.alpha, beta=study.beta, zeta=0.0)
    had = np.flatnonzero(count)
    due, rows = 0.0, 0
    for held in lacking.blocks.folds(4):
        seen = [k for k in range(len(lacking.blocks.counts)) if k not in held]
        mean = (rest + lacking.spread(lacking.blocks.cost(seen)))[had] / count[had]
        some = Pairs.from_sorted(pairs.n_nodes, pairs.rows[had], pairs.cols[had])
        whole = LocalProblem(cost=mean, pairs=some, quadratic=4 * study.beta, alpha=study.alpha)
        u = np.zeros(pairs.size)
        u[had] = solve_to_rounding(whole, None).w
        own = replace(problem, cost=lacking.blocks.cost(seen))
        pull = 3.0 * 4 * study.beta
        pulled = replace(own, cost=own.cost - pull * lacking.take(u), quadratic=own.quadratic + pull)
        n = lacking.blocks.counts[held].sum()
        unseen = replace(problem, cost=lacking.blocks.cost(held))
        due, rows = due + n * unseen.value(solve_to_rounding(pulled, None).w), rows + n
    assert evidence["loss at 3"] == pytest.approx(due / rows, rel=1e-6)


def test_the_mean_of_independent_graphs_is_over_those_who_have_a_pair():
    silos = six_silos()
    study = learn_silos(silos, allowing(method="independent"))
    count = sum(silo.spread(np.ones(silo.pairs.size)) for silo in silos)
    total = sum(study.graphs.values())
    np.testing.assert_allclose(study.consensus[count > 0], (total / np.maximum(count, 1))[count > 0], atol=1e-12)
    assert study.degree == pytest.approx(
        2 * sum(np.count_nonzero(w) for w in study.graphs.values()) / sum(silo.pairs.n_nodes for silo in silos)
    )


# --- edges of the model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_a_node_whose_neighbours_are_elsewhere_is_no_trouble(rng, settings):
    """Node 0 hangs on node 1, which one silo lacks: in the pooled graph it has no neighbour there."""
    signals = []
    for _ in range(4):
        base = rng.normal(size=(60, 7))
        signals.append(np.column_stack([base[:, 0] + 10.0, base[:, 0] + 10.0 + 0.05 * base[:, 6], base[:, 1:6]]))
    had = [None, None, None, numbers(0, 2, 3, 4, 5, 6)]
    study = learn_silos(tables_as_silos(signals, had), allowing(degree=1.5, **settings))
    assert study.converged
    assert np.isfinite(study.objective)
    assert np.isfinite(study.rho)
    if settings["method"] == "pooled":
        assert not study.graphs["silo 3"][:6].any()  # the pairs of node 0: it is isolated there
    if settings["method"] == "exact":
        assert study.graphs["silo 3"][:6].any()  # there the logarithm holds: every node has an edge


def test_a_coupling_means_the_same_to_those_who_lack_nothing(rng):
    """A node left with a weak neighbour does not inflate the reference force, and so ρ."""
    costs = silo_costs(rng, "similar", 10, 30)
    complete = learn_silos(silos_with(costs, [None] * 10), allowing(coupling=1.0))
    for seed in range(5):
        had = some_nodes(np.random.default_rng(seed), 10, 30)
        study = learn_silos(silos_with(costs, had), allowing(coupling=1.0))
        assert study.rho == pytest.approx(complete.rho, rel=0.1)


def test_a_pair_that_nobody_has_is_no_edge_and_is_told(rng):
    costs = silo_costs(rng, "similar", 4, 6)
    had = [numbers(0, 1, 2, 3, 4), numbers(0, 1, 2, 3, 4), numbers(1, 2, 3, 4, 5), numbers(1, 2, 3, 4, 5)]
    for settings in METHODS[:5]:
        study = learn_silos(silos_with(costs, had), allowing(**settings))
        assert study.converged
        assert study.consensus[4] == 0.0  # the pair (0, 5)
        assert "1 pairs of nodes are in no silo" in (nodes_warning(study, Pairs.all(6)) or "")


def test_silos_without_a_common_pair_are_told_apart(rng):
    """As where sites call the same nodes differently: every pair that is there is in several silos."""
    costs = silo_costs(rng, "similar", 4, 7)
    had = [numbers(0, 1, 2, 3), numbers(0, 1, 2, 3), numbers(3, 4, 5, 6), numbers(3, 4, 5, 6)]
    told = nodes_warning(learn_silos(silos_with(costs, had), allowing()), Pairs.all(7))
    assert "2 groups" in told
    assert "'silo 0', 'silo 1'; 'silo 2', 'silo 3'" in told
    assert "called differently" in told
    joined = [*had[:3], numbers(2, 3, 4, 5, 6)]
    assert "groups" not in nodes_warning(learn_silos(silos_with(costs, joined), allowing()), Pairs.all(7))


def test_a_pair_that_one_silo_alone_has_is_told_with_its_name(rng):
    had = [None, numbers(0, 1, 2, 3), numbers(0, 1, 2, 3)]
    study = learn_silos(silos_with(silo_costs(rng, "similar", 3, 5), had), allowing(coupling=0.6))
    assert study.converged
    assert "4 pairs of nodes are in one silo alone (silo 0 4)" in (nodes_warning(study, Pairs.all(5)) or "")
    whole = learn_silos(silos_with(silo_costs(rng, "similar", 3, 5), [None] * 3), allowing(coupling=0.6))
    assert nodes_warning(whole, Pairs.all(5)) is None


@pytest.mark.parametrize("shared", [0, 1, 2])
def test_silos_that_hardly_share_a_node_learn_alone_where_they_share_no_pair(rng, shared):
    costs = silo_costs(rng, "different", 2, 8)
    had = [np.arange(4 + shared, dtype=np.int32), np.arange(4, 8, dtype=np.int32)]
    study = learn_silos(silos_with(costs, had), allowing(alpha=1.0, beta=0.5, coupling=1.0, sparsity=0.0))
    assert study.converged
    if shared < 2:  # no pair in common: nothing couples them
        assert study.rho == 0
    if shared == 0:
        for silo in silos_with(costs, had):
            alone = solve_to_rounding(silo.problem(alpha=1.0, beta=0.5, zeta=0.0), None).w
            np.testing.assert_allclose(silo.take(study.graphs[silo.name]), alone, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "oneshot", "independent", "pooled"])
def test_a_node_that_nobody_has_is_an_error_that_names_it(rng, method):
    silos = silos_with(silo_costs(rng, "similar", 3, 6), [numbers(0, 1, 3, 4, 5)] * 3)
    pull = {"pull": 1.0} if method == "oneshot" else {}
    with pytest.raises(SilosError, match="none has 'Thalamus'"):
        learn_silos(silos, allowing(method=method, **pull), nodes=["a", "b", "Thalamus", "d", "e", "f"])


def test_silos_that_lack_nodes_are_refused_unless_the_study_allows_it(rng):
    silos = silos_with(silo_costs(rng, "similar", 3, 6), [None, None, numbers(0, 1, 2, 3)])
    with pytest.raises(SilosError, match=r"silo 2: expected all 6 nodes, got 4.*missing_nodes='allow'"):
        learn_silos(silos, StudySettings())
    for method in ("algorithm1", "fedavg", "fedprox", "mrmtl", "ditto"):
        with pytest.raises(ParameterError, match="missing_nodes"):
            allowing(method=method)
    with pytest.raises(ParameterError, match="missing_nodes"):
        allowing(method="independent", solver="gradient")


def test_a_silo_with_one_node_or_with_a_node_that_has_no_pair_is_refused_by_name(rng):
    costs = silo_costs(rng, "similar", 2, 4)
    with pytest.raises(SilosError, match="silo 1: expected two nodes"):
        learn_silos(silos_with(costs, [None, numbers(2)]), allowing())
    ring = Pairs.listed(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    across = Silo.on(ring, numbers(0, 2), name="silo 1", cost=np.empty(0))
    first = Silo(name="silo 0", pairs=ring, cost=costs[0][[0, 2, 3, 5]])
    with pytest.raises(SilosError, match="silo 1: lacks every node with which 2 of its own may be paired"):
        learn_silos([first, across], allowing(alpha=1.0, beta=0.5))
    with pytest.raises(SilosError, match=r"silo 1: expected two nodes that may be paired, got none\. Leave"):
        learn_silos([first, across], allowing(degree=1.5, zeta=0.3))


def test_a_silo_with_fewer_nodes_than_the_degree_takes_part(rng):
    had = [None, None, numbers(0, 1, 2)]
    for method in ("exact", "independent"):
        study = learn_silos(silos_with(silo_costs(rng, "similar", 3, 12), had), allowing(method=method, degree=6.0))
        assert study.converged


@pytest.mark.parametrize("settings", [METHODS[0], METHODS[6]], ids=str)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path, settings):
    class StoppedError(Exception):
        pass

    def stop(stage, record):
        if stage == "learn" and record["round"] == 2:
            raise StoppedError

    whole = learn_silos(six_silos(), allowing(**settings))
    with pytest.raises(StoppedError):
        learn_silos(six_silos(), allowing(**settings), checkpoint=tmp_path, on_round=stop)
    resumed = learn_silos(six_silos(), allowing(**settings), checkpoint=tmp_path)
    assert resumed.consensus.tobytes() == whole.consensus.tobytes()
    for name, w in whole.graphs.items():
        assert resumed.graphs[name].tobytes() == w.tobytes()
    other = six_silos()
    other[0] = Silo.on(other[0].study_pairs, numbers(*range(8)), name=other[0].name, cost=np.ones(28))
    assert run_identity(other, allowing()) != run_identity(six_silos(), allowing())
