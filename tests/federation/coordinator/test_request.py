"""How long a site is waited for: a process that comes up, one that computes, one that is gone."""

from dataclasses import dataclass, field

import pytest

from silograph.federation.coordinator import request as site_request
from silograph.federation.coordinator.request import FIRST_WAIT, HELLO_WAIT, PROCESS_ENDED, Silence
from silograph.federation.coordinator.run import Outcome
from testing.consortium import Consortium, Loopback, close

QUICK = 'method = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25'


@dataclass
class Line(Loopback):
    """Is silent to the first requests to lima, from the first or the second kind on, and keeps how long it had."""

    silence: Silence = Silence.LATE
    times: int = 0
    greeted: bool = False  # whether lima is silent only after it was greeted
    waits: list[float] = field(default_factory=list)

    def ask(self, site: str, data: bytes, timeout: float, most: int) -> bytes | Silence:
        if site == "lima":
            self.waits.append(timeout)
            if len(self.waits) in range(1 + self.greeted, 1 + self.greeted + self.times):
                return self.silence
        return super().ask(site, data, timeout, most)


@pytest.fixture
def conducted(tmp_path, monkeypatch):
    monkeypatch.setattr(site_request, "REACH_PAUSE", 0.01)
    consortium = Consortium(tmp_path)

    def run_attempt(**settings) -> tuple[Outcome, list[float]]:
        line = Line(consortium.services(), **settings)
        outcome = consortium.run_attempt(consortium.run(QUICK), line)
        close(line.services)
        return outcome, line.waits

    return run_attempt


def test_a_process_that_comes_up_is_tried_often_for_what_is_sent_too_early_is_lost(conducted):
    outcome, waits = conducted(times=6)
    assert outcome.ended == "done"
    assert waits[0] == HELLO_WAIT
    assert sum(waits[:6]) < 8
    assert waits[7] == FIRST_WAIT


def test_a_site_that_computes_for_long_is_asked_ever_more_seldom(conducted):
    outcome, waits = conducted(times=4, greeted=True)
    assert outcome.ended == "done"
    assert waits[1:6] == [FIRST_WAIT * 2**n for n in range(5)]


@pytest.mark.parametrize("greeted", [False, True])
def test_a_site_out_of_reach_many_times_is_not_waited_for_any_longer_when_it_is_back(conducted, greeted):
    outcome, waits = conducted(silence=Silence.UNREACHABLE, times=30, greeted=greeted)
    assert outcome.ended == "done"
    assert max(waits) == FIRST_WAIT


def test_a_process_that_the_site_says_is_gone_is_soon_given_up_though_it_might_have_been_coming_up(
    conducted, monkeypatch
):
    monkeypatch.setattr(site_request, "GONE_AFTER", 0.1)
    outcome, _ = conducted(silence=Silence.GONE, times=1000)
    assert outcome.ended == "trouble"
    assert outcome.troubles == ({"site": "lima", "kind": "lost", "reason": PROCESS_ENDED, "code": ""},)
