"""A supervisor and an engine that dies, forgets and stays silent: what counts is what the run's folder says."""

import time
from collections.abc import Callable, Sequence

import pytest

from silograph._util.locks import Lock
from silograph.errors import CheckpointError
from silograph.federation.coordinator import supervisor as module
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.request import NO_KEY, OUT_OF_REACH
from silograph.federation.coordinator.run import CoordinatorRun, Outcome, open_run
from silograph.federation.coordinator.supervisor import MissingSitesError, ServerAwayError, Supervisor
from silograph.federation.members import revoke_key
from testing.consortium import Consortium, Loopback, close

QUICK = 'method = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25'
Act = Callable[[CoordinatorRun, str], None]


class Engine:
    """Does with each job what the next of `acts` does, calls every job `said`, and hears of sites at any time."""

    def __init__(self, run: CoordinatorRun, *acts: Act, said: str = "running") -> None:
        self.folder, self.acts, self.said = run.folder, list(acts), said
        self.submitted: list[tuple[str, ...]] = []
        self.aborted: list[str] = []
        self.heard: Callable[[], dict[str, float]] = lambda: dict.fromkeys(run.sites, time.time())

    def submit(self, runs: Sequence[str], sites: Sequence[str]) -> str:
        self.submitted.append(tuple(sites))
        job = f"job {len(self.submitted)}"
        self.acts.pop(0)(open_run(self.folder), job)
        return job

    def state(self, job: str) -> str:
        return "ended" if job in self.aborted else self.said

    def reason(self, job: str) -> str:
        return ""

    def abort(self, job: str) -> None:
        self.aborted.append(job)

    def connected(self) -> dict[str, float]:
        return self.heard()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "ABORT_SECONDS", 1.0)


@pytest.fixture
def consortium(tmp_path) -> Consortium:
    return Consortium(tmp_path)


def brings_it_to_its_end(consortium: Consortium) -> Act:
    def act(run: CoordinatorRun, job: str) -> None:
        transport = Loopback({site: consortium.service(site) for site in run.sites})
        consortium.run_attempt(run, transport, attempt=job)
        close(transport.services)

    return act


def is_killed(run: CoordinatorRun, job: str) -> None:
    """As a process that is killed in the midst of a run leaves the folder: begun, the lock free, and no word."""
    with History(run.history) as history:
        history.add_event("started", reason=job)


def loses(site: str) -> Act:
    def act(run: CoordinatorRun, job: str) -> None:
        trouble = {"site": site, "kind": "lost", "reason": OUT_OF_REACH}
        run.write_outcome(Outcome(attempt=job, ended="trouble", troubles=(trouble,)))

    return act


def finish(
    run: CoordinatorRun, engine: Engine, on_poll: Callable[[Supervisor], None] = lambda supervisor: None
) -> list[str]:
    said: list[str] = []
    done = Supervisor(run, engine, tell=said.append, on_poll=on_poll).finish()
    assert done.outcome().ended == "done"
    return said


def test_a_process_that_was_killed_is_missed_at_once_though_the_engine_calls_its_job_running(consortium):
    run = consortium.run(QUICK)
    engine = Engine(run, is_killed, brings_it_to_its_end(consortium))
    began = time.monotonic()
    assert any("was killed" in text for text in finish(run, engine))
    assert time.monotonic() - began < module.STARTUP_SECONDS / 2
    assert engine.aborted == ["job 1"]  # it does not hold a place in the engine's queue


def test_a_job_that_does_not_come_up_is_ended_before_another_is_submitted(consortium, monkeypatch):
    monkeypatch.setattr(module, "STARTUP_SECONDS", 0.1)
    run = consortium.run(QUICK)
    engine = Engine(run, lambda run, job: None, brings_it_to_its_end(consortium))
    said = finish(run, engine)
    assert engine.aborted == ["job 1"]
    assert said == ["The run's process did not come up within 0.1 s; the run goes on from its last round."]


def test_nothing_is_said_to_have_died_where_a_site_is_left_out_before_the_job_begins(consortium):
    run = consortium.run(QUICK, 'on_missing = "continue"\ntimeout = 0.3')
    engine = Engine(run, lambda run, job: None, brings_it_to_its_end(consortium))
    engine.state = lambda job: (
        "ended" if job in engine.aborted else "running" if len(engine.submitted) > 1 else "waiting"
    )
    engine.heard = lambda: {site: time.time() for site in consortium.sites if site != "oslo" or not engine.submitted}
    said = finish(run, engine)
    assert engine.submitted == [consortium.sites, ("kyoto", "lima")]
    assert not [text for text in said if "process" in text]
    assert "oslo: was not connected for 0.3 s." in said[-1]


def test_a_run_that_is_in_good_hands_is_watched_and_not_begun_a_second_time(consortium):
    run = consortium.run(QUICK)
    is_killed(run, "of an earlier supervisor")
    lock, polls = Lock(run.folder / "lock"), []
    assert lock.take()

    def end_it_later(supervisor: Supervisor) -> None:
        polls.append(supervisor)
        if len(polls) == 5:
            run.write_outcome(Outcome(attempt="of an earlier supervisor", ended="done"))
            lock.release()

    engine = Engine(run)
    finish(run, engine, end_it_later)
    assert not engine.submitted


def test_an_end_that_is_written_down_counts_though_the_server_is_gone(consortium):
    run = consortium.run(QUICK)
    engine = Engine(run, brings_it_to_its_end(consortium))
    submit = engine.submit

    def submitted_last(runs, sites):
        job = submit(runs, sites)
        engine.state = engine.connected = away
        return job

    def away(*_):
        raise ServerAwayError("gone")

    engine.submit = submitted_last
    finish(run, engine)


def test_no_site_is_left_out_because_the_server_is_gone(consortium):
    run = consortium.run(QUICK, 'on_missing = "continue"\ntimeout = 0.05')
    engine = Engine(run, brings_it_to_its_end(consortium))
    back, sites = time.monotonic() + 0.5, engine.heard

    def later() -> dict[str, float]:
        if time.monotonic() < back:
            raise ServerAwayError("gone")
        return sites()

    engine.heard = later
    finish(run, engine)
    assert engine.submitted == [consortium.sites]


def test_only_sites_that_are_missing_for_the_whole_timeout_are_left_out(consortium):
    run = consortium.run(QUICK, 'on_missing = "continue"\ntimeout = 0.5')
    engine = Engine(run, brings_it_to_its_end(consortium))
    began = time.monotonic()

    def heard() -> dict[str, float]:
        gone = {"oslo"} | ({"lima"} if 0.3 < time.monotonic() - began < 0.7 else set())
        return {site: time.time() for site in consortium.sites if site not in gone}

    engine.heard = heard
    finish(run, engine)
    assert engine.submitted == [("kyoto", "lima")]
    assert open_run(run.folder).left_out == {"oslo": "was not connected for 0.5 s"}


def test_a_site_whose_key_was_revoked_is_not_waited_for_and_left_out(consortium):
    run = consortium.run(QUICK, 'on_missing = "continue"\nquorum = 2')
    run.federation.certificates.mkdir()
    run.federation.certificate("oslo").write_bytes(consortium.signers["oslo"].certificate)
    revoke_key(run.federation, "oslo")
    engine = Engine(run, brings_it_to_its_end(consortium))
    finish(run, engine)
    assert engine.submitted == [("kyoto", "lima")]
    assert open_run(run.folder).left_out == {"oslo": NO_KEY}


def test_a_site_out_of_reach_is_asked_again_only_once_it_was_heard_of_since(consortium):
    run = consortium.run(QUICK)
    engine = Engine(run, loses("lima"), brings_it_to_its_end(consortium))
    stale, began, later = time.time(), time.monotonic(), 2.0
    engine.heard = lambda: {
        site: time.time() if site != "lima" or time.monotonic() - began > later else stale for site in consortium.sites
    }
    said = finish(run, engine)
    assert time.monotonic() - began > later
    assert "lima is not connected; waiting for it." in said


def test_a_run_that_cannot_go_on_is_not_tried_again(consortium):
    run = consortium.run(QUICK)
    engine = Engine(run, lambda run, job: run.write_outcome(Outcome(attempt=job, ended="failed", message="a defect")))
    with pytest.raises(CheckpointError, match="a defect"):
        finish(run, engine)
    assert len(engine.submitted) == 1


def test_a_policy_that_stops_says_who_is_missing(consortium):
    run = consortium.run(QUICK, 'on_missing = "stop"\ntimeout = 0.05')
    engine = Engine(run)
    engine.heard = lambda: dict.fromkeys(("kyoto", "lima"), time.time())
    with pytest.raises(MissingSitesError, match="oslo: was not connected"):
        finish(run, engine)
