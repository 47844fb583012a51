"""What crosses between silos and coordinator, method by method."""

import gc
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

from silograph._util.plain import to_plain
from silograph.engine import study
from silograph.engine.inprocess import InProcess
from silograph.engine.loop import run_loop
from silograph.engine.study import learn_silos
from silograph.errors import ProtocolError, SilosError
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters
from silograph.methods.independent import Independent
from silograph.protocol.codec import decode_task, decode_update, encode_task, encode_update
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import Header, Task, Total
from silograph.protocol.method import Answer
from silograph.protocol.silo import Silo, SiloState
from testing.problems import costs

N_NODES, NAMES = 6, ("north", "south", "west")
SETTINGS = {
    "exact": {"degree": 2},
    "exact, alpha and nu given": {"alpha": 1.0, "beta": 0.5, "nu": 2.0, "lam": 0.1},
    "exact, uncoupled": {"degree": 2, "coupling": 0},
    "algorithm1": {"degree": 2, "method": "algorithm1", "rounds": 3},
    "algorithm1, all options": {
        "degree": 2,
        "method": "algorithm1",
        "rounds": 3,
        "fresh": True,
        "gamma_cap": 5,
        "step": "lipschitz",
    },
    "algorithm1, diverging": {"degree": 2, "method": "algorithm1", "rounds": 60, "step": 30.0},
    "independent": {"degree": 2, "method": "independent"},
    "independent, gradient": {"degree": 2, "method": "independent", "solver": "gradient", "rounds": 3},
    "pooled": {"degree": 2, "method": "pooled"},
    "fedavg": {"degree": 2, "method": "fedavg", "rounds": 3},
    "fedprox": {"degree": 2, "method": "fedprox", "rounds": 3},
    "mrmtl": {"degree": 2, "method": "mrmtl"},
    "mrmtl, gradient": {"degree": 2, "method": "mrmtl", "solver": "gradient", "rounds": 3},
    "ditto": {"degree": 2, "method": "ditto"},
    "ditto, gradient": {"degree": 2, "method": "ditto", "solver": "gradient", "rounds": 3},
}
every_method = pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)


def some_silos(names: tuple[str, ...] = NAMES, n_nodes: int = N_NODES) -> list[Silo]:
    rng, pairs = np.random.default_rng(3), Pairs.all(n_nodes)
    return [Silo(name=name, pairs=pairs, cost=costs("smooth", rng, 40, n_nodes), n_samples=40) for name in names]


SETTINGS_ALONE = StudySettings(method="independent")
MODEL = ModelParameters(n_silos=1, alpha=1.0, beta=0.5, zeta=0.0, pooled=np.zeros(15))


def independent() -> Independent:
    return Independent(SETTINGS_ALONE, MODEL)


def task(step: str = "close", method: str = "independent", number: int = 2, run: str = "0f", **parts) -> Task:
    return Task(header=Header(run=run, method=method, step=step, round=number), parts=parts)


def learn() -> Task:
    return task("learn", number=1)


# --- a silo does not answer everything --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (task(method="fedavg"), "north, task: expected a step of 'independent', got 'close' of 'fedavg'"),
        (task("signals"), "north, task: expected a step of 'independent', got 'signals' of 'independent'"),
        (task("learn", u=np.zeros(15)), r"task, round 2 \(independent, learn\): expected \[\], got \['u'\]"),
        (task(), r"task, round 2 \(independent, close\): expected \['u'\], got \[\]"),
        (task(u=np.zeros(14)), r"round 2 \(independent, close\), u: expected shape \(15,\), got \(14,\)"),
        (task(u=0.0), r"u: expected shape \(15,\), got \(\)"),
        (task(u=np.zeros((15, 1))), r"u: expected shape \(15,\), got \(15, 1\)"),
        (task(u=np.full(15, np.nan)), "u: expected finite numbers"),
        (task(u=np.full(15, np.inf)), "u: expected finite numbers"),
        (task(u=np.full(15, -1.0)), "u: expected numbers ≥ 0, got -1"),
        (task(u=np.zeros(15, np.float32)), "u: expected float64, got float32"),
        (task(u=np.zeros(15), run="1f"), "north: expected a task of run 0f, got one of run 1f"),
        (task(u=np.zeros(15), number=1), "north: expected round 2 of 'independent', got round 1"),
        (task(u=np.zeros(15), number=3), "north: expected round 2 of 'independent', got round 3"),
    ],
)
def test_a_silo_refuses_a_task_that_is_not_the_methods_and_stays_as_it_was(asked, said):
    silo = some_silos()[0]
    _, state = answer_task(independent(), silo, SiloState(), learn(), report=True)
    before = deepcopy(to_plain(state))
    with pytest.raises(ProtocolError, match=said):
        answer_task(independent(), silo, state, asked, report=True)
    np.testing.assert_equal(to_plain(state), before)


@dataclass(frozen=True, slots=True)
class Talkative(Independent):
    """A method whose silos say something else than was declared."""

    said: dict

    def local(self, silo: Silo, state: SiloState, task: Task) -> Answer:
        answer = Independent.local(self, silo, state, task)
        return replace(answer, parts={**answer.parts, **self.said})


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"signals": np.ones(15)}, r"expected \['diverged', 'gap', 'objective', 'w'\], got .*'signals'"),
        ({"w": np.full(15, np.nan)}, "w: expected finite numbers"),
        ({"w": np.ones(16)}, r"w: expected shape \(15,\), got \(16,\)"),
        ({"gap": np.ones(15)}, r"gap: expected shape \(\), got \(15,\)"),
        ({"gap": -1.0}, "gap: expected numbers ≥ 0, got -1"),
    ],
)
def test_what_was_not_declared_does_not_leave_the_silo(said, refusal):
    with pytest.raises(ProtocolError, match=rf"north, round 1 \(independent, learn\).*{refusal}"):
        answer_task(Talkative(SETTINGS_ALONE, MODEL, said=said), some_silos()[0], SiloState(), learn(), report=True)


# --- numbers that belong to one silo ----------------------------------------------------------------------------------


def test_a_silos_own_numbers_go_along_only_if_the_run_allows_it():
    for report, told in ((True, {"samples", "scale", "edges", "distance", "contribution"}), (False, set())):
        silo = some_silos()[0]
        _, state = answer_task(independent(), silo, SiloState(), learn(), report=report)
        update, _ = answer_task(independent(), silo, state, task(u=np.zeros(15)), report=report)
        assert set(update.reported) == told


@every_method
def test_a_study_that_does_not_report_learns_the_same_and_tells_nothing_singly(options):
    told = learn_silos(some_silos(), StudySettings(**options))
    silent = learn_silos(some_silos(), StudySettings(**options, report=False))
    some = set() if options.get("method") == "pooled" else set(NAMES)  # beside the one sum, nothing is told
    assert (set(told.reported), set(silent.reported)) == (some, set())
    assert set(told.contributions) == set(NAMES)
    assert not set(silent.contributions) & some
    np.testing.assert_array_equal(told.consensus, silent.consensus)


# --- the coordinator sees sums only -----------------------------------------------------------------------------------


class Watched:
    """A method, and all that crosses while it runs."""

    def __init__(self, method, answers: list[Answer], merged: list) -> None:
        self._method, self._answers, self._merged = method, answers, merged

    def __getattr__(self, name: str):
        return getattr(self._method, name)

    def local(self, silo, state, task):
        answer = self._method.local(silo, state, task)
        self._answers.append(answer)
        return answer

    def merge(self, cohort, state, total):
        self._merged.append((self._method, cohort, total))
        return self._method.merge(cohort, state, total)


@pytest.fixture
def watch(monkeypatch):
    """Run a study, and return what its silos answered and what its coordinator was given."""

    def watched(options):
        answers, merged = [], []
        monkeypatch.setattr(
            study, "run_loop", lambda method, engine, **rest: run_loop(Watched(method, answers, merged), engine, **rest)
        )
        silos = some_silos()
        learn_silos(silos, StudySettings(**options))
        return silos, answers, merged

    return watched


def reachable(start: object) -> list[object]:
    """All objects that can be got at from this one."""
    found, todo = {}, [start]
    while todo:
        thing = todo.pop()
        if id(thing) not in found and not isinstance(thing, type):
            found[id(thing)] = thing
            todo += gc.get_referents(thing) + ([thing.base] if isinstance(thing, np.ndarray) else [])
    return list(found.values())


@every_method
def test_the_coordinator_is_given_a_sum_with_just_the_declared_parts(options, watch):
    _, _, merged = watch(options)
    assert {method.name for method, _, _ in merged} > {"setup"}
    for method, cohort, total in merged:
        assert type(total) is Total
        assert set(total.parts) == set(method.steps[total.header.step].up)
        assert (total.n_silos, cohort.silos) == (len(NAMES), NAMES)


@every_method
def test_no_silos_vector_can_be_got_at_from_a_sum(options, watch):
    silos, answers, merged = watch(options)
    private = [silo.cost for silo in silos] + [
        part for answer in answers for part in answer.parts.values() if np.ndim(part) and np.any(part)
    ]
    for _, _, total in merged:
        arrays = [thing for thing in reachable(total) if isinstance(thing, np.ndarray)]
        assert all(array.base is None and array.ndim == 1 for array in arrays)
        assert not any(np.array_equal(array, vector) for array in arrays for vector in private)


@every_method
def test_what_is_told_singly_are_a_few_numbers(options, watch):
    _, _, merged = watch(options)
    told = [own for _, _, total in merged for own in total.reported.values()]
    assert bool(told) == (options.get("method") != "pooled")
    assert all(set(own) == {"samples", "scale", "edges", "distance", "contribution"} for own in told)
    assert all(type(number) is float for own in told for number in own.values())


@every_method
def test_the_task_reaches_all_silos_unaltered(options, monkeypatch):
    class Checking(InProcess):
        def exchange(self, method, task):
            before = encode_task(task)
            total = super().exchange(method, task)
            assert encode_task(task) == before
            return total

    monkeypatch.setattr(study, "InProcess", Checking)
    learn_silos(some_silos(), StudySettings(**options))


# --- where and in what order silos run does not matter ----------------------------------------------------------------


class OverTheWire(InProcess):
    """Silos that are reached by bytes."""

    def _ask(self, method, silo, task):
        update, state = super()._ask(method, silo, decode_task(encode_task(task)))
        return decode_update(encode_update(update)), state


def assert_same(one, other):
    assert one.consensus.tobytes() == other.consensus.tobytes()
    assert {name: w.tobytes() for name, w in one.graphs.items()} == {n: w.tobytes() for n, w in other.graphs.items()}
    assert repr(one.history) == repr(other.history)
    assert (one.objective, one.contributions) == (other.objective, other.contributions)


@every_method
def test_messages_by_bytes_give_the_same_study_to_the_last_bit(options, monkeypatch):
    here = learn_silos(some_silos(), StudySettings(**options))
    monkeypatch.setattr(study, "InProcess", OverTheWire)
    assert_same(learn_silos(some_silos(), StudySettings(**options)), here)


@every_method
def test_the_order_of_silos_does_not_change_a_bit(options):
    settings = StudySettings(**options)
    assert_same(learn_silos(some_silos()[::-1], settings), learn_silos(some_silos(), settings))


@every_method
def test_the_number_of_threads_does_not_change_a_bit(options):
    settings = StudySettings(**options)
    assert_same(learn_silos(some_silos(), settings, workers=1), learn_silos(some_silos(), settings, workers=3))


@every_method
def test_silos_that_took_part_before_learn_as_if_they_had_not(options):
    silos, settings = some_silos(), StudySettings(**options)
    assert_same(*(learn_silos(silos, settings) for _ in range(2)))


# --- silos that do not fit --------------------------------------------------------------------------------------------


def test_a_study_needs_a_silo():
    with pytest.raises(SilosError, match="at least one silo, got none"):
        learn_silos([], StudySettings())


def test_two_silos_of_one_name_are_refused():
    with pytest.raises((ProtocolError, SilosError), match="'north'"):
        learn_silos(some_silos(("north", "south", "north")), StudySettings(degree=2))


def test_a_silo_with_other_pairs_is_refused_by_name():
    silos = some_silos() + some_silos(("odd",), n_nodes=N_NODES + 1)
    with pytest.raises((ProtocolError, SilosError), match="odd"):
        learn_silos(silos, StudySettings(degree=2))


@pytest.mark.parametrize("options", [{"rounds": np.int64(3)}, {"degree": np.float32(2)}, {"local_steps": np.int32(2)}])
def test_settings_may_be_numpys_numbers(options):
    learn_silos(some_silos(), StudySettings(**({"degree": 2, "method": "fedavg", "rounds": 2} | options)))
