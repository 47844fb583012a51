"""A masked run that is cut short anywhere ends in the same bits, maybe with new keys, and no mask hides two answers."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from silograph.federation.coordinator import supervisor as supervisor_module
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun, open_run
from silograph.federation.coordinator.supervisor import Supervisor
from silograph.federation.envelope import open_message
from silograph.federation.site.audit import verify
from silograph.federation.site.budget import Budget
from testing.conformance import ONESHOT, digests
from testing.consortium import SITES, Consortium, Loopback, close, needs_new_keys
from testing.cutting import Cut, Killed, attempt_on, moment_of

PATIENTS = {"kyoto": 5}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    consortium = Consortium(tmp_path_factory.mktemp("undisturbed"), patients=PATIENTS)
    return digests(consortium.finish(consortium.masked_run(ONESHOT)))


def masked_answers(line: Cut, consortium: Consortium) -> Iterator[tuple[tuple[str, str], bytes]]:
    """The masked sums that left, by site and generation: there is one task to each."""
    for site, head, data in line.seen:
        reply = open_message(data, consortium.trust)
        if (head.get("stage"), reply.head["kind"]) == ("setup", "answer"):
            yield (site, head["run"]), reply.body


def bring_to_its_end(consortium: Consortium, run: CoordinatorRun, make_line) -> tuple[CoordinatorRun, int]:
    """Attempts, each with fresh processes, until one ends well; the run in its last generation, and how often it was
    cut short."""
    cuts, sent = 0, defaultdict(set)
    for _ in range(300):
        line, run = make_line(), open_run(run.folder)
        outcome = attempt_on(line, consortium, run)
        for place, body in masked_answers(line, consortium):
            sent[place].add(body)
        if outcome is None:
            cuts += 1
        elif needs_new_keys(outcome):
            with suppress(Killed):
                open_run(run.folder).begin_anew()
        else:
            assert outcome.ended == "done", outcome
            assert all(len(bodies) == 1 for bodies in sent.values())
            assert len({body for bodies in sent.values() for body in bodies}) == len(sent)  # each mask is another
            return run, cuts
    raise AssertionError("no end")


def assert_sound(consortium: Consortium, run: CoordinatorRun, expected: dict[str, str]) -> None:
    assert digests(run.folder / "results") == expected
    for site in SITES:
        assert verify(consortium.folder / site / "audit.jsonl").problem is None
        (opening,) = Budget(consortium.folder / site).openings()  # one sum, however many generations
        assert (opening.masked, opening.cohort) == (True, SITES)


def test_a_masked_run_cut_short_at_every_message_ends_in_the_same_bits(tmp_path, undisturbed):
    consortium, met = Consortium(tmp_path, patients=PATIENTS), set()

    def is_new(site: str, head: dict, moment: str) -> bool:
        place = (site, moment, *moment_of(head))
        return place not in met and not met.add(place)

    first = consortium.masked_run(ONESHOT)
    run, cuts = bring_to_its_end(consortium, first, lambda: Cut(consortium, is_new))
    assert len(met) == 2 * 3 * 6  # greeting, key, all keys, the sum, the flag, the end; before and after; three sites
    assert cuts == len(met)
    assert run.generation > 1
    assert_sound(consortium, run, undisturbed)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_masked_run_cut_short_at_every_write_ends_in_the_same_bits(tmp_path, monkeypatch, undisturbed, after):
    """Every file of the coordinator and of all sites appears by a rename: before it or after it, all is over."""
    consortium, met, replace = Consortium(tmp_path, patients=PATIENTS), set(), Path.replace
    run, lines = consortium.masked_run(ONESHOT), []

    def cut(self: Path, target: Path) -> Path:
        inside = Path(target).relative_to(tmp_path)
        # Of any generation, and whatever the folder is called that is filled beside
        place = tuple(re.sub(rf"^({run.name}|checkpoint)\.\d+$|^\..*", "", part) for part in inside.parts)
        is_new = bool(lines) and place not in met
        met.add(place)
        if is_new:
            lines[-1].cut()
            if not after:
                raise Killed
        done = replace(self, target)
        if is_new:
            raise Killed
        return done

    def make_line() -> Cut:
        lines.append(Cut(consortium, lambda *place: False))
        return lines[-1]

    monkeypatch.setattr(Path, "replace", cut)
    run, cuts = bring_to_its_end(consortium, run, make_line)
    monkeypatch.undo()
    names = {place[-1] for place in met}
    assert {"about.json", "keys", "outcome.json", "results", "00000001.json"} <= names
    assert cuts >= 20
    assert_sound(consortium, run, undisturbed)


def test_what_was_answered_before_a_crash_of_all_is_sent_again_and_needs_no_new_keys(tmp_path, undisturbed):
    """All sites have answered; the coordinator and all of them end before the sum is written down."""
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run, answered = consortium.masked_run(ONESHOT), []

    def is_due(site: str, head: dict, moment: str) -> bool:
        if moment == "after" and head.get("stage") == "setup":
            answered.append(site)
        return head.get("stage") == "learn"

    assert attempt_on(Cut(consortium, is_due), consortium, run) is None
    assert sorted(answered) == sorted(SITES)
    setup = run.checkpoint / "setup"
    for path in setup.iterdir():  # as if it had not been written
        path.unlink()
    ended, _ = bring_to_its_end(consortium, run, lambda: Cut(consortium, lambda *place: False))
    assert ended.generation == 1
    assert_sound(consortium, ended, undisturbed)


@pytest.mark.parametrize("kind", ["key", "peers", "round"])
def test_one_site_that_starts_anew_leads_to_new_keys_of_all(tmp_path, undisturbed, kind):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run, services, left = consortium.masked_run(ONESHOT), consortium.services(), [1]

    def tamper(site, data, service):
        head = open_message(data, consortium.trust).head
        if left and (site, head["kind"]) == ("lima", kind):
            left.pop()
            services[site].close()
            services[site] = consortium.service(site)
        return services[site].reply(data)

    outcome = consortium.run_attempt(run, Loopback(services, tamper))
    assert not left
    if kind != "key":  # before, there was none to lose
        assert needs_new_keys(outcome)
        run = run.begin_anew()
        outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert outcome.ended == "done"
    assert_sound(consortium, run, undisturbed)


def test_a_site_with_keys_of_an_attempt_that_was_cut_short_leads_to_new_keys(tmp_path, undisturbed):
    """Some got all keys, then the coordinator and one site start anew, the others do not."""
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run, services = consortium.masked_run(ONESHOT), consortium.services()

    def tamper(site, data, service):
        if (site, open_message(data, consortium.trust).head["kind"]) == ("oslo", "peers"):
            raise Killed
        return service(data)

    with pytest.raises(Killed):
        consortium.run_attempt(run, Loopback(services, tamper))
    services["oslo"].close()
    services["oslo"] = consortium.service("oslo")
    outcome = consortium.run_attempt(run, Loopback(services))
    assert needs_new_keys(outcome)
    assert {trouble["site"] for trouble in outcome.troubles} <= {"kyoto", "lima"}
    run = run.begin_anew()
    assert consortium.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    assert_sound(consortium, run, undisturbed)


# --- the supervisor ---------------------------------------------------------------------------------------------------


class Host:
    """An engine on which lima's process starts anew before it is asked for the sum, so many times."""

    def __init__(self, consortium: Consortium, run: CoordinatorRun, times: int) -> None:
        self._consortium, self._folder, self._times, self._jobs = consortium, run.folder, times, 0

    def submit(self, runs, sites) -> str:
        self._jobs += 1
        services, due = self._consortium.services(), [1] * (self._jobs <= self._times)

        def tamper(site, data, service):
            head = open_message(data, self._consortium.trust).head
            if due and (site, head.get("stage")) == ("lima", "setup"):
                due.pop()
                services[site].close()
                services[site] = self._consortium.service(site)
            return services[site].reply(data)

        self._consortium.run_attempt(open_run(self._folder), Loopback(services, tamper), attempt=f"job {self._jobs}")
        close(services)
        return f"job {self._jobs}"

    def state(self, job: str) -> str:
        return "ended"

    def reason(self, job: str) -> str:
        return ""

    def abort(self, job: str) -> None:
        pass

    def connected(self) -> dict[str, float]:
        return dict.fromkeys(SITES, float("inf"))


def supervise(consortium: Consortium, monkeypatch, *, times: int) -> tuple[CoordinatorRun, list[str]]:
    monkeypatch.setattr(supervisor_module, "POLL_SECONDS", 0.01)
    run, said = consortium.masked_run(ONESHOT), []
    host = Host(consortium, run, times)
    return Supervisor(run, host, tell=said.append, on_poll=lambda run: None).finish(), said


def test_the_run_begins_anew_by_itself_and_says_so_and_nobody_is_left_out(tmp_path, monkeypatch, undisturbed):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run, said = supervise(consortium, monkeypatch, times=2)
    assert (run.generation, dict(run.left_out), run.sites) == (3, {}, SITES)
    assert said.count("The run begins anew with the same sites and new keys, because those of lima are gone.") == 2
    events = [(event.kind, event.site) for event in History.open_read(run.history).events()]
    assert events.count(("new-keys", "lima")) == 2
    assert json.loads((run.results / "run.json").read_text())["federation"]["left_out"] == {}
    assert_sound(consortium, run, undisturbed)


def test_a_run_does_not_begin_anew_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor_module, "MOST_GENERATIONS", 4)
    with pytest.raises(supervisor_module.CheckpointError, match=r"begun anew 3 times.*lima last"):
        supervise(Consortium(tmp_path), monkeypatch, times=100)
