"""What `silograph federation run` tells while it looks on: each thing once, in words, and what is old as old."""

import pytest
from rich.progress import Progress

from silograph.cli.federation.looking import LINE_SECONDS, Looker

NOW = 1_000_000.0


def event(number, kind="note", reason="something", site=None, ago=0.0):
    return {"id": number, "at": NOW - ago, "kind": kind, "reason": reason, "site": site}


def a_round(number, gap=None):
    sizes = {"bytes_down": 600_000, "bytes_up": 400_000}
    return {"stage": "learn", "round": number, "gap": gap, "silos": 2, **sizes}


def seen(*, state="running", why="", since=None, rounds=(), skipped=0, events=(), generation=1):
    about = {"state": state, "why": why, "since": since, "sites": ["lima", "oslo"], "now": NOW}
    return {**about, "rounds": list(rounds), "skipped": skipped, "events": list(events), "generation": generation}


@pytest.fixture
def said():
    return []


@pytest.fixture
def looker(said):
    with Progress(disable=True) as progress:
        yield Looker(progress, terminal=False, say=said.append, quiet=False)


def test_an_event_is_told_once_and_the_next_look_asks_for_later_ones(looker, said):
    looker.show(seen(events=[event(1, "started"), event(2, "waiting", "waits for approval", "lima")]))
    assert said == ["lima: waits for approval."]
    assert looker.known["after"] == 2
    looker.show(seen(events=[event(3, "waiting", "waits for approval", "lima")]))  # by a new attempt
    assert len(said) == 1
    looker.show(
        seen(events=[event(4, reason="cured", site="lima"), event(5, reason="waits for approval", site="lima")])
    )
    assert said[1:] == ["lima: cured.", "lima: waits for approval."]


def test_what_happened_long_ago_is_told_as_such(looker, said):
    looker.show(seen(events=[event(1, reason="lima is not connected", ago=7200.0), event(2, reason="now")]))
    assert said == ["2 h ago: lima is not connected.", "now."]


def test_what_is_waited_for_is_one_line_however_long_it_lasts(looker, said):
    for seconds in range(0, 300, 60):
        looker.show(seen(state="waiting", why="the approval of lima", since=NOW - seconds))
    assert said == ["Waiting for the approval of lima"]


def test_rounds_are_a_line_now_and_then_and_the_last_one_is_told(looker, said, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("silograph.cli.federation.looking.time.monotonic", lambda: now[0])
    looker.show(seen(rounds=[a_round(1)]))
    looker.show(seen(rounds=[a_round(2, 0.5)], skipped=1))
    now[0] += LINE_SECONDS + 1
    looker.show(seen(rounds=[a_round(3, 0.25)], skipped=2))
    looker.show(seen(state="done", rounds=[a_round(4, 0.125)], skipped=3))
    assert said == [
        "Round 1: 2 sites answered, 1.0 MB",
        "Round 3, certified gap 2.5e-01: 2 sites answered, 3.0 MB",
        "Round 4, certified gap 1.2e-01: 2 sites answered, 4.0 MB",
    ]
    assert looker.n_rounds == 4


def test_a_run_that_began_anew_has_its_own_rounds(looker):
    looker.show(seen(rounds=[a_round(1), a_round(2)]))
    looker.show(seen(rounds=[a_round(1)], generation=2))
    assert (looker.n_rounds, looker.known["generation"]) == (1, 2)


def test_whether_anything_moved_sets_the_pace(looker):
    assert looker.show(seen(rounds=[a_round(1)]))
    assert not looker.show(seen(rounds=[], skipped=1))
