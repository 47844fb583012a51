"""How a run is and where its time went: every word rests on something that was written down."""

from dataclasses import replace

import pytest

from silograph.federation.coordinator.history import Site
from silograph.federation.coordinator.states import (
    LONGEST_GAP,
    NO_CONDUCTOR,
    End,
    Evidence,
    Order,
    Watch,
    look_on,
    phase_of,
    state_of,
)

WANTED = Order(number=2, wanted=True, at=100.0)
COMPUTING = Watch(phase="computing", sites=(), since=110.0, at=120.0, seconds={})
AT_WORK = Evidence(done=False, order=WANTED, end=None, watch=COMPUTING, conducted=True, conductor=True)


def told(**changes: object) -> tuple[str, str]:
    state = state_of(replace(AT_WORK, **changes))
    return state.name, state.why


def test_a_run_is_running_while_something_computes():
    assert told() == ("running", "")


def test_a_run_waits_for_what_the_conductor_saw_last():
    watch = replace(COMPUTING, phase="approval", sites=("lima", "oslo"))
    assert told(watch=watch) == ("waiting", "the approval of lima, oslo")
    assert told(watch=replace(watch, phase="sites")) == ("waiting", "lima, oslo, not connected or silent")
    assert told(watch=replace(watch, phase="server", sites=()))[0] == "waiting"
    turn = ("waiting", "its turn: 4 others run, or wait")
    assert told(watch=replace(watch, phase="turn", sites=()), conducted=False) == turn


def test_a_run_that_nobody_conducts_does_not_run_whatever_was_seen_before():
    assert told(conducted=False) == ("waiting", "the conductor, which takes it in hand")
    assert told(conducted=False, conductor=False) == ("waiting", NO_CONDUCTOR)
    assert told(watch=None)[0] == "waiting"


def test_results_count_before_all_else():
    gone = replace(WANTED, wanted=False)
    assert told(done=True, order=gone, conducted=False, conductor=False) == ("done", "")


def test_a_run_that_was_left_is_stopped_until_it_is_ordered_again():
    end = End(order=2, message="lima: has fewer samples than it allows.", at=130.0)
    assert told(end=end) == ("stopped", end.message)
    assert told(end=replace(end, order=1)) == ("running", "")


def test_a_run_that_was_given_up_is_abandoned_even_while_its_processes_end():
    assert told(order=Order(number=3, wanted=False, at=140.0)) == ("abandoned", "given up by the lead")


def heard(state: str, at: float | None) -> Site:
    return Site(name="", last_seen=at, state=state, version=None, note=None)


def phase(**changes):
    both = {"lima": heard("answered", 20.0), "oslo": heard("answered", 21.0)}
    seen = {"held": True, "began": 10.0, "sites": ("lima", "oslo"), "known": both, "silent": False, "away": ()}
    return phase_of(**(seen | changes))


def test_an_attempt_computes_once_every_site_has_answered_it():
    assert phase() == ("computing", ())
    assert phase(known={"lima": heard("answered", 20.0)}) == ("starting", ())
    assert phase(known={"lima": heard("answered", 20.0), "oslo": heard("lost", 9.0)}) == ("starting", ())


def test_approvals_and_missing_sites_are_told_by_name():
    assert phase(known={"lima": heard("unapproved", 20.0), "oslo": heard("answered", 20.0)}) == ("approval", ("lima",))
    assert phase(known={"lima": heard("answered", 20.0), "oslo": heard("missing", 15.0)}) == ("sites", ("oslo",))
    # what a site said to an earlier attempt may be cured
    assert phase(known={"lima": heard("unapproved", 9.0), "oslo": heard("answered", 20.0)}) == ("starting", ())


def test_without_a_process_the_server_or_sites_are_waited_for():
    assert phase(held=False, away=("oslo",)) == ("sites", ("oslo",))
    assert phase(held=False, away=("oslo",), silent=True) == ("server", ())
    assert phase(held=False) == ("starting", ())
    assert phase(silent=True) == ("computing", ())  # what computes needs no conductor


def looks(*seen: tuple[str, float], wanted_since: float = 0.0) -> Watch:
    watch = None
    for phase, at in seen:
        watch = look_on(watch, phase, (), now=at, wanted_since=wanted_since)
    assert watch is not None
    return watch


def test_each_second_goes_to_the_phase_that_the_run_was_in():
    watch = looks(("starting", 1.0), ("approval", 9.0), ("approval", 19.0), ("computing", 29.0), ("computing", 34.0))
    assert watch.seconds == {"starting": 9.0, "approval": 20.0, "computing": 5.0}
    assert (watch.since, watch.at) == (29.0, 34.0)


@pytest.mark.parametrize("at", [LONGEST_GAP + 10.0, 100_000.0])
def test_while_nobody_conducts_it_a_run_waits_for_the_server(at):
    watch = looks(("computing", 0.0), ("computing", 5.0), ("computing", 5.0 + at))
    assert watch.seconds == {"starting": 0.0, "computing": 5.0, "server": at}


def test_the_time_for_which_a_run_was_stopped_is_nobodys():
    before = looks(("computing", 0.0), ("computing", 10.0))
    again = look_on(before, "starting", (), now=5001.0, wanted_since=5000.0)
    assert again.seconds == {"starting": 0.0, "computing": 11.0}
