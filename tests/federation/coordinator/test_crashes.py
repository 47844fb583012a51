"""A run that is cut short anywhere, and taken up again, ends as if it had never stopped: to the last bit."""

import json
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from silograph.engine.checkpoint import Checkpoint
from silograph.federation.coordinator import results
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun, open_run
from silograph.federation.envelope import open_message
from silograph.federation.site.audit import verify
from testing.conformance import ALGORITHM1, DITTO, EXACT, GIVEN, ONESHOT, assert_same_result, digests, learned_here
from testing.consortium import NODES, SERVER, SITES, Consortium, Loopback, as_data, conduct_elsewhere, processes
from testing.cutting import Killed, cut_short, moment_of

# Few rounds of set-up: ν and λ are given
METHODS = {
    "exact": 'method = "exact"\nnu = 2.0\nlam = 0.05\nrounds = 4\n' + GIVEN,
    "algorithm1": 'method = "algorithm1"\nnu = 2.0\nlam = 0.05\nrounds = 2\n' + GIVEN,
    "ditto": DITTO,
    "oneshot": ONESHOT,
}
LONG = EXACT.replace("rounds = 4", "rounds = 14\ntol = 1e-13")  # until points are mixed, many of which a site keeps
PAIR = SITES[:2]


@pytest.fixture(scope="module", params=METHODS)
def method(request) -> str:
    return METHODS[request.param]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Callable[..., dict[str, str]]:
    known: dict[tuple, dict[str, str]] = {}

    def results(learn: str, sites: tuple[str, ...] = SITES) -> dict[str, str]:
        if (learn, sites) not in known:
            consortium = Consortium(tmp_path_factory.mktemp("undisturbed"), sites=sites)
            known[learn, sites] = digests(consortium.finish(consortium.run(learn)))
        return known[learn, sites]

    return results


def assert_sound(consortium: Consortium, run: CoordinatorRun, expected: dict[str, str]) -> None:
    assert digests(run.folder / "results") == expected
    for site in consortium.sites:
        assert verify(consortium.folder / site / "audit.jsonl").problem is None
        own = consortium.folder / site / "results" / run.run_id
        for file in (f"silos/{site}", "consensus"):
            shared = run.folder / "results" / file / "graph.npz"
            assert (own / file / "graph.npz").read_bytes() == shared.read_bytes()
    rounds = History.open_read(run.history).rounds()
    learned = [one.round for one in rounds if one.stage == "learn"]
    assert sorted(learned) == list(range(1, len(learned) + 1))  # none is missing


# --- at every message ---------------------------------------------------------------------------------------------


def test_a_run_cut_short_at_every_message_of_every_site_ends_in_the_same_bits(tmp_path, method, undisturbed):
    """One run, taken up again after each cut: before and after each site has answered each request."""
    consortium = Consortium(tmp_path, sites=PAIR)
    run, met = consortium.run(method), set()

    def is_new(site: str, head: dict, moment: str) -> bool:
        place = (site, moment, *moment_of(head))
        return place not in met and not met.add(place)

    cuts = 0
    while cut_short(consortium, run, is_new):
        cuts += 1
    assert cuts == len(met) >= 4 * 4  # the greeting, two rounds or more, the end; at two sites, before and after
    assert_sound(consortium, run, undisturbed(method, PAIR))
    record = json.loads((run.folder / "results" / "run.json").read_text())
    assert (record["resumed"], record["federation"]["attempts"]) == (True, cuts + 1)


@pytest.mark.slow
@pytest.mark.parametrize("method", [LONG, ALGORITHM1, DITTO, ONESHOT], ids=METHODS)
def test_a_run_cut_short_once_anywhere_ends_in_the_same_bits(tmp_path, method, undisturbed):
    places: list[tuple] = []
    consortium = Consortium(tmp_path / "first")
    cut_short(consortium, consortium.run(method), lambda *place: places.append((place[0], *moment_of(place[1]))))
    for number, place in enumerate(dict.fromkeys(places)):
        for moment in ("before", "after"):
            consortium = Consortium(tmp_path / f"{number} {moment}")
            run = consortium.run(method)
            due = iter([True])

            def is_due(site, head, now, place=place, moment=moment, due=due) -> bool:
                return (site, *moment_of(head)) == place and now == moment and next(due, False)

            assert cut_short(consortium, run, is_due)
            assert not cut_short(consortium, run, is_due)
            assert_sound(consortium, run, undisturbed(method))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_cut_short_as_each_round_is_written_down_ends_in_the_same_bits(tmp_path, monkeypatch, undisturbed, after):
    """All sites have answered; the coordinator's checkpoint is not there yet, or is, and nothing else knows of it."""
    consortium = Consortium(tmp_path, sites=PAIR)
    run, save, met = consortium.run(EXACT), Checkpoint.save, set()

    def cut(self: Checkpoint, tree: dict) -> None:
        place = (self._folder.name, len(tree.get("coordinator", {}).get("history", ())))
        is_new = run.folder in self._folder.parents and place not in met
        met.add(place)
        if is_new and not after:
            raise Killed
        save(self, tree)
        if is_new:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", cut)
    cuts = 0
    while cut_short(consortium, run, lambda *place: False):
        cuts += 1
    assert cuts == 7  # three rounds of set-up, four of learning
    assert_sound(consortium, run, undisturbed(EXACT, PAIR))


def test_a_run_cut_short_as_its_results_are_written_has_all_of_them_in_the_end(tmp_path, monkeypatch, undisturbed):
    consortium = Consortium(tmp_path)
    run = consortium.run(EXACT)
    genuine, left = results.write_run, [1]

    def cut(folder: Path, *rest) -> None:
        genuine(folder, *rest)
        if left:
            left.pop()
            raise Killed

    monkeypatch.setattr(results, "write_run", cut)
    assert cut_short(consortium, run, lambda *place: False)
    assert not (run.folder / "results").exists()
    assert not cut_short(consortium, run, lambda *place: False)
    assert_sound(consortium, run, undisturbed(EXACT))


def test_sites_that_start_anew_every_other_round_change_nothing(tmp_path, undisturbed):
    consortium = Consortium(tmp_path)
    run, services, asked = consortium.run(LONG), consortium.services(), dict.fromkeys(SITES, 0)

    def tamper(site, data, service):
        asked[site] += 1
        if asked[site] % 3 == 0:
            services[site].close()
            services[site] = consortium.service(site)
        return services[site].reply(data)

    consortium.finish(run, Loopback(services, tamper))
    assert_sound(consortium, run, undisturbed(LONG))


# --- real processes -----------------------------------------------------------------------------------------------


def child(consortium: Consortium, run: CoordinatorRun):
    """A process that has begun to conduct the run."""
    here, there = processes().Pipe()
    signers = {SERVER: consortium.server} | consortium.signers
    data = {name: as_data(signer) for name, signer in signers.items()}
    arguments = (consortium.folder, run.folder, consortium.authority.root, data, there)
    process = processes().Process(target=conduct_elsewhere, args=arguments)
    process.start()
    assert here.recv() == "begun"
    return process


def kill_at_random(folder: Path, learn: str, *, kills: int, seed: int) -> tuple[Consortium, CoordinatorRun, int]:
    """A run whose process is killed, again and again, and that this one brings to its end; how often it was killed."""
    rng, consortium = random.Random(seed), Consortium(folder)
    run, killed = consortium.run(learn), 0
    for _ in range(kills):
        process = child(consortium, run)
        process.join(rng.uniform(0.0, 0.4))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    consortium.finish(open_run(run.folder))
    return consortium, run, killed


def test_a_process_killed_at_any_moment_costs_no_bit(tmp_path, undisturbed):
    killed = 0
    for seed, learn in enumerate([LONG, ALGORITHM1, EXACT]):
        consortium, run, times = kill_at_random(tmp_path / str(seed), learn, kills=4, seed=seed)
        assert_sound(consortium, run, undisturbed(learn))
        killed += times
    assert killed >= 6  # of 12: the others were done already


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_processes_killed_at_any_moment_cost_no_bit(tmp_path, undisturbed, method, seed):
    consortium, run, _ = kill_at_random(tmp_path, method, kills=10, seed=100 + seed)
    assert_sound(consortium, run, undisturbed(method))


def test_while_one_process_conducts_a_run_no_other_does(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.federation.coordinator.attempt.LOCK_SECONDS", 0.0)
    consortium = Consortium(tmp_path)
    run, entered, go = consortium.run(EXACT), threading.Event(), threading.Event()

    def tamper(site, data, service):
        entered.set()
        go.wait(10)
        return service(data)

    services = consortium.services()
    first = threading.Thread(target=consortium.run_attempt, args=(run, Loopback(services, tamper), "first"))
    first.start()
    entered.wait(10)
    second = consortium.run_attempt(run, Loopback(services), "second")
    go.set()
    first.join()
    assert (second.ended, run.outcome().attempt, run.outcome().ended) == ("failed", "first", "done")


# --- order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_the_order_in_which_sites_answer_changes_no_bit(tmp_path, undisturbed, seed):
    consortium = Consortium(tmp_path)
    rng = np.random.default_rng(seed)
    sleeps = {site: iter(rng.exponential(0.01, size=1000)) for site in SITES}
    order: list[str] = []

    def tamper(site, data, service):
        time.sleep(next(sleeps[site]))
        reply = service(data)
        time.sleep(next(sleeps[site]))
        order.append(site)
        return reply

    run = consortium.run(EXACT)
    consortium.finish(run, Loopback(consortium.services(), tamper))
    assert len({tuple(order[k : k + 3]) for k in range(0, len(order), 3)}) > 1
    assert_sound(consortium, run, undisturbed(EXACT))


# --- a site left out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds_before", [0, 4])
def test_a_run_without_a_site_is_that_of_the_others_from_its_beginning(tmp_path, rounds_before):
    consortium = Consortium(tmp_path)
    run, left = consortium.run('method = "exact"\nalpha = 0.5\nbeta = 0.25'), "kyoto"
    rest = tuple(site for site in SITES if site != left)
    asked = 0

    def is_due(site: str, head: dict, moment: str) -> bool:
        nonlocal asked
        asked += site == left and moment == "before" and head["kind"] == "round"
        return asked > rounds_before

    assert cut_short(consortium, run, is_due)
    other = run.leave_out({left: "late"})
    assert open_run(run.folder) == other
    assert (other.sites, other.run_id != run.run_id) == (rest, True)
    transport = Loopback(consortium.services())
    folder = consortium.finish(other, transport)
    assert left not in {site for site, _ in transport.asked}
    learned = learned_here(run.study(), NODES, {site: consortium.table(site) for site in rest})
    assert_same_result(folder, learned, NODES, rest)
    assert learned.converged
    record = json.loads((folder / "run.json").read_text())
    assert record["result"]["relative_gap"] <= run.study().settings.tol
    assert record["federation"]["left_out"] == {left: "late"}


def test_answers_for_the_run_with_all_sites_do_not_pass_in_the_run_without_one(tmp_path):
    """The same round's sum over all sites minus that over the rest would be one site's own answer."""
    consortium = Consortium(tmp_path)
    run = consortium.run(EXACT)
    first = Loopback(consortium.services())
    consortium.finish(run, first)
    second = Loopback(consortium.services())
    consortium.finish(run.leave_out({"kyoto": "late"}), second)
    runs = [{open_message(data, consortium.trust).text("run") for _, data in line.asked} for line in (first, second)]
    assert runs[0].isdisjoint(runs[1])


def test_no_file_is_left_open_by_runs_that_were_cut_short(tmp_path):
    consortium = Consortium(tmp_path)
    run, number = consortium.run(EXACT), iter(range(10**6))
    cut_short(consortium, run, lambda *place: next(number) == 20)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        number = iter(range(10**6))
        cut_short(consortium, run, lambda *place, number=number: next(number) == 7)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
