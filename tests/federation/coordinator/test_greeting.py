"""What a greeting finds out: who has not approved, for how long, and who has another version of silograph."""

import time

import pytest

from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.request import VERSION
from silograph.federation.site import service
from silograph.federation.versions import go_together
from testing.consortium import SITES, Consortium, Loopback, approve, close

QUICK = 'method = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25'
FIRST_TWO = ".".join(VERSION.split(".")[:2])


def attempt(consortium, run):
    transport = Loopback(consortium.services())
    outcome = consortium.run_attempt(run, transport)
    close(transport.services)
    return outcome


def events(run, kind):
    with History.open_read(run.history) as history:
        return [(event.site, event.reason) for event in history.events() if event.kind == kind]


def test_a_timeout_below_a_minute_is_kept_for_approvals_too(tmp_path):
    consortium = Consortium(tmp_path, approve_all=False)
    run = consortium.run(QUICK, 'on_missing = "stop"\ntimeout = 1')
    began = time.monotonic()
    outcome = attempt(consortium, run)
    assert time.monotonic() - began < 30
    assert outcome.ended == "trouble"
    assert {one["reason"] for one in outcome.troubles} == {"has not approved the study for 1 s"}
    assert {site for site, _ in events(run, "waiting")} == set(SITES)
    for site in SITES:
        approve(consortium.folder / site, run.study().text)
    assert attempt(consortium, run).ended == "done"


def test_a_site_whose_version_does_not_go_with_ours_is_refused_with_both(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "VERSION", "99.0.0")
    consortium = Consortium(tmp_path)
    run = consortium.run(QUICK)
    outcome = attempt(consortium, run)
    assert outcome.ended == "trouble"
    for trouble in outcome.troubles:
        assert trouble["kind"] == "refused"
        assert "99.0.0" in trouble["reason"]
        assert VERSION in trouble["reason"]


def test_a_version_that_goes_with_ours_is_told_of_once(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "VERSION", f"{FIRST_TWO}.99")
    consortium = Consortium(tmp_path)
    run = consortium.run(QUICK)
    assert attempt(consortium, run).ended == "done"
    notes = events(run, "note")
    assert sorted(site for site, _ in notes) == sorted(SITES)
    assert all(f"{FIRST_TWO}.99" in reason and VERSION in reason for _, reason in notes)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("0.1.0", "0.1.0", True),
        ("0.1.0", "0.1.7.dev3", True),
        ("0.1.0", "0.2.0", False),
        ("1.2.3", "2.2.3", False),
        ("0.1.0", "", False),
        ("0.1.0", "newest", False),
    ],
)
def test_versions_with_the_same_first_two_numbers_go_together(one, other, together):
    assert go_together(one, other) == go_together(other, one) == together
