"""The conductor brings every wanted run to its end, each by itself, and writes down why it left one."""

import threading
import time

import pytest

from silograph.errors import CheckpointError, OutputError
from silograph.federation.coordinator import conductor as conductor_module
from silograph.federation.coordinator import supervisor as supervisor_module
from silograph.federation.coordinator.conductor import Conductor
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.orders import give_order, read_end, read_state, read_times, read_watch
from silograph.federation.coordinator.run import Outcome, open_run
from silograph.federation.coordinator.supervisor import Supervisor
from silograph.federation.folders import FederationFolder
from silograph.runs.reader import read_run
from testing.consortium import Consortium, Loopback, close
from testing.waiting import eventually

QUICK = 'method = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25'


class Engine:
    """Conducts each run that is submitted in a thread, as jobs do in processes; one at a time waits for `gate`."""

    def __init__(self, consortium: Consortium) -> None:
        self.consortium = consortium
        self.federation = FederationFolder(consortium.folder)
        self.jobs: dict[str, threading.Thread] = {}
        self.aborted: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fails: set[str] = set()
        self.closed = 0

    def submit(self, runs, sites):
        job = f"job {len(self.jobs) + 1}"
        self.jobs[job] = threading.Thread(target=self._conduct, args=(runs[0], job), daemon=True)
        self.jobs[job].start()
        return job

    def _conduct(self, name, job):
        run = open_run(self.federation.run(name))
        if name in self.fails:
            run.write_outcome(Outcome(attempt=job, ended="failed", message="a defect"))
            return
        assert self.gate.wait(60)
        transport = Loopback(self.consortium.services())
        self.consortium.run_attempt(run, transport, attempt=job)
        close(transport.services)

    def state(self, job):
        return "running" if self.jobs[job].is_alive() else "ended"

    def reason(self, job):
        return ""

    def abort(self, job):
        self.aborted.append(job)

    def connected(self):
        return dict.fromkeys(self.consortium.sites, time.time())

    def close(self):
        self.closed += 1


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor_module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervisor_module, "ABORT_SECONDS", 0.5)
    monkeypatch.setattr(conductor_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(conductor_module, "WATCH_SECONDS", 0.02)
    return Engine(Consortium(tmp_path))


@pytest.fixture
def conductor(engine):
    conductor = Conductor(engine.federation, lambda: engine)
    thread = threading.Thread(target=conductor.conduct)
    thread.start()
    yield conductor
    engine.gate.set()
    conductor.end()
    thread.join()


def ordered(engine):
    run = engine.consortium.run(QUICK)
    give_order(run, wanted=True)
    return run


def name_of(run):
    return read_state(open_run(run.folder)).name


def test_every_wanted_run_is_brought_to_its_end(engine, conductor):
    first, second, unwanted = ordered(engine), ordered(engine), engine.consortium.run(QUICK)
    eventually(lambda: name_of(first) == name_of(second) == "done")
    assert (name_of(unwanted), unwanted.outcome()) == ("stopped", None)
    eventually(lambda: engine.closed)  # with nothing in hand, no connection is kept
    record = read_run(first.results).record
    times = record.federation.times
    assert record.result.seconds == times.computing
    assert times.total == pytest.approx(times.computing + times.starting, abs=0.01)
    assert 0 < times.total <= time.time() - first.begun


def test_a_run_that_fails_is_stopped_with_its_reason_and_hurts_no_other(engine, conductor):
    engine.gate.clear()
    good, bad = ordered(engine), engine.consortium.run(QUICK)
    engine.fails.add(bad.name)
    give_order(bad, wanted=True)
    eventually(lambda: name_of(bad) == "stopped")
    assert read_end(bad).message == "The run cannot go on: a defect"
    engine.gate.set()
    eventually(lambda: name_of(good) == "done")
    engine.fails.clear()
    give_order(bad, wanted=True)
    eventually(lambda: name_of(bad) == "done")


def test_a_folder_that_cannot_be_read_hurts_no_run(engine, conductor):
    damaged = ordered(engine)
    (damaged.folder / "about.json").write_text("{")
    good = ordered(engine)
    eventually(lambda: name_of(good) == "done")


def test_more_runs_than_there_is_room_for_wait_for_their_turn(engine, conductor, monkeypatch):
    monkeypatch.setattr(conductor_module, "MOST_AT_ONCE", 1)
    engine.gate.clear()
    first = ordered(engine)
    eventually(lambda: engine.jobs)
    second = ordered(engine)
    eventually(lambda: read_watch(second) is not None)
    assert read_state(second).why == "its turn: 4 others run, or wait"
    assert len(engine.jobs) == 1
    engine.gate.set()
    eventually(lambda: name_of(first) == name_of(second) == "done")
    assert read_times(second).turn > 0


def test_a_run_that_is_given_up_is_left_with_its_job_ended(engine, conductor):
    engine.gate.clear()
    run = ordered(engine)
    eventually(lambda: engine.jobs)
    give_order(run, wanted=False)
    eventually(lambda: engine.aborted)
    assert name_of(run) == "abandoned"
    engine.gate.set()  # a job that the engine does not end goes no further by itself
    eventually(lambda: not any(thread.is_alive() for thread in engine.jobs.values()))
    assert open_run(run.folder).outcome().ended == "stopped"
    give_order(run, wanted=True)
    eventually(lambda: name_of(run) == "done")


def test_what_people_should_know_is_an_event(engine, conductor, monkeypatch):
    gone = engine.connected
    back = time.time() + 1.0
    engine.connected = lambda: gone() if time.time() > back else {}
    run = ordered(engine)
    eventually(lambda: name_of(run) == "done")
    with History.open_read(run.history) as history:
        notes = [event.reason for event in history.events() if event.kind == "note"]
    assert notes == [f"{site} is not connected; waiting for it." for site in engine.consortium.sites]
    assert read_times(run).sites > 0.5


def test_a_disk_that_was_full_costs_no_run(engine, conductor, monkeypatch):
    monkeypatch.setattr(conductor_module, "MOST_AT_ONCE", 1)
    engine.gate.clear()
    first = ordered(engine)
    eventually(lambda: engine.jobs)
    tried, keep = [], conductor_module.keep_watch

    def full(run, phase, *about):
        if phase != "turn":
            return
        tried.append(run)
        raise OutputError("watch.json: no space left on device.")

    monkeypatch.setattr(conductor_module, "keep_watch", full)
    second = ordered(engine)
    eventually(lambda: len(tried) > 2)  # again, and not once for all
    monkeypatch.setattr(conductor_module, "keep_watch", keep)
    engine.gate.set()
    eventually(lambda: name_of(first) == name_of(second) == "done", 60)


def test_an_outcome_that_a_power_cut_left_empty_stops_no_other_run(engine, conductor):
    torn = engine.consortium.run(QUICK)
    (torn.folder / "outcome.json").touch()
    give_order(torn, wanted=True)
    good = ordered(engine)
    eventually(lambda: name_of(good) == "done")
    with pytest.raises(CheckpointError, match=r"outcome\.json: cannot be read .* Remove it; the run then goes on"):
        torn.outcome()


def test_a_clock_that_is_put_back_makes_no_run_wait(engine, tmp_path, monkeypatch):
    with History(tmp_path / "history.sqlite") as history:
        ahead = time.time() + 3600
        monkeypatch.setattr("time.time", lambda: ahead)
        history.add_event("started")
        monkeypatch.undo()
        history.add_event("resumed")
        assert history.last_start() == pytest.approx(time.time(), abs=60)
    supervisor = Supervisor(engine.consortium.run(QUICK), engine, tell=print, on_poll=print)
    supervisor._unheard["oslo"] = time.time() + 3600
    assert supervisor._is_connected("oslo", time.time())
