"""A study ends in the same bits however its silos are ordered, and however they are grouped into sums of sums."""

from dataclasses import replace

import numpy as np
import pytest

from silograph.data.blocks import moments_of_blocks
from silograph.data.costs import table_costs
from silograph.data.pairwise import moments_of
from silograph.engine.inprocess import InProcess
from silograph.engine.study import learn_on
from silograph.federation.study_file import parse_study
from silograph.graph.pairs import Pairs
from silograph.protocol.codec import decode_subtotal, encode_subtotal
from silograph.protocol.silo import Silo
from silograph.protocol.sums import add_some, combine, open_total
from testing.conformance import every_method

N_SILOS, D = 6, 8
PAIRS, NODES = Pairs.all(D), [f"node {k}" for k in range(D)]


class Grouped(InProcess):
    """Silos that come to the coordinator as sums over groups of them, another grouping in each round."""

    def __init__(self, silos: list[Silo], seed: int, n_groups: int) -> None:
        super().__init__(silos)
        self._rng, self._n_groups = np.random.default_rng(seed), n_groups

    def exchange(self, method, task):
        updates = self.group.ask(method, task, report=True, checked=True)
        fields, units = method.steps[task.header.step].up, method.units(task)
        group = self._rng.permutation(np.arange(len(updates)) % self._n_groups)
        parts = {k: [update for update, g in zip(updates, group, strict=True) if g == k] for k in set(group.tolist())}
        sums = [add_some(part, fields, units, source=f"site {k}") for k, part in parts.items()]
        sent = [decode_subtotal(encode_subtotal(replace(one, reported={}))) for one in sums]
        return open_total(combine(sent), fields, units)


def some_silos() -> list[Silo]:
    rng, found = np.random.default_rng(7), []
    mix = rng.normal(size=(D, D))
    for i in range(N_SILOS):
        table = 0.3 * rng.normal(size=(30 + 7 * i, D)) @ (mix + 0.4 * rng.normal(size=(D, D)))
        read = table_costs(
            moments_of(table, PAIRS), moments_of_blocks(table, PAIRS), standardize=False, names=NODES, source="table"
        )
        found.append(Silo(name=f"silo {i}", pairs=PAIRS, cost=read.cost, n_samples=read.n_samples, blocks=read.blocks))
    return found


def bits(engine: InProcess, method: str, top: str = "") -> dict[str, bytes]:
    text = f'name = "a"\nnodes = {NODES!r}\n{top}\n[learn]\n{method}\n'
    study = learn_on(engine, parse_study(text.encode(), source="study").settings, run_id="run")
    engine.close()
    numbers = np.array([study.objective, study.gap, study.alpha, study.rho, study.lam])
    graphs = {name: w.tobytes() for name, w in sorted(study.graphs.items())}
    return {"consensus": study.consensus.tobytes(), "numbers": numbers.tobytes()} | graphs


@every_method
def test_any_order_and_any_grouping_of_silos_end_in_the_same_bits(method):
    silos = some_silos()
    expected = bits(InProcess(silos), method)
    for seed, n_groups in enumerate((2, 3, 4, 5)):
        order = np.random.default_rng(seed).permutation(N_SILOS)
        fresh = [replace(silos[i]) for i in order]
        assert bits(Grouped(fresh, seed, n_groups), method) == expected


def test_threads_and_one_thread_end_in_the_same_bits():
    silos = some_silos()
    assert bits(InProcess(silos, workers=3), 'method = "exact"\ndegree = 3') == bits(
        InProcess(silos, workers=1), 'method = "exact"\ndegree = 3'
    )


@pytest.mark.parametrize("n_groups", [1, N_SILOS])
def test_one_group_or_each_silo_for_itself_is_a_grouping_too(n_groups):
    silos, method = some_silos(), 'method = "oneshot"\ndegree = 3'
    assert bits(Grouped(silos, 0, n_groups), method) == bits(InProcess(silos), method)


@pytest.mark.parametrize("method", ["exact", "oneshot", "independent", "pooled"])
def test_silos_that_lack_nodes_end_in_the_same_bits_in_any_grouping(method):
    silos, fewer = some_silos(), np.array([0, 1, 2, 4, 5, 7], dtype=np.int32)
    place, pull = PAIRS.within(fewer)[1], "pull = 1.0\n" if method == "oneshot" else ""
    for i in (1, 4):
        silos[i] = Silo.on(PAIRS, fewer, name=silos[i].name, cost=silos[i].cost[place])
    learn, top = f'method = "{method}"\ndegree = 3\n{pull}', 'missing_nodes = "allow"'
    expected = bits(InProcess(silos), learn, top)
    for seed, n_groups in enumerate((1, 2, 4)):
        order = np.random.default_rng(seed).permutation(N_SILOS)
        assert bits(Grouped([silos[i] for i in order], seed, n_groups), learn, top) == expected
