"""Attacks through the sites' services notice when what stops them is taken out."""

import pytest

from silograph.audit import ledgers, refusals, sites
from silograph.audit.scene import LEAST_TRIALS, Scene
from silograph.errors import ProtocolError
from silograph.federation.site import gate, masking, noise, service
from silograph.federation.site.budget import Budget
from silograph.methods.common.personal import Others

SCENE = Scene(trials=LEAST_TRIALS)


def named(found, name):
    (one,) = [finding for finding in found if finding.name == name]
    return one


def test_a_site_that_does_not_look_at_pins_is_noticed(monkeypatch):
    monkeypatch.setattr(service, "check_pins", lambda *args, **options: None)
    assert named(sites.second_certificate(SCENE), "sites/second-key").broken


def test_a_site_that_does_not_look_at_who_signed_a_key_is_noticed(monkeypatch):
    monkeypatch.setattr("silograph.federation.keys.public_key_fingerprint", lambda certificate: Anything())
    assert named(sites.second_certificate(SCENE), "sites/swapped-key").broken


class Anything:
    """Equal to all."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None


def test_a_site_that_sends_its_term_bare_is_noticed(monkeypatch):
    monkeypatch.setattr(masking.Masking, "mask", lambda self, total, **where: total)
    assert named(sites.read_answers(SCENE), "sites/masked").broken


def test_a_site_that_tells_of_pairs_that_it_alone_has_is_noticed(monkeypatch):
    monkeypatch.setattr(masking, "shown_pairs", lambda statements, n_pairs: None)
    assert named(sites.lonely_pair(SCENE), "sites/lonely-masked").broken


def test_a_site_without_a_ledger_of_rows_is_noticed(monkeypatch):
    monkeypatch.setattr(gate.Gate, "check_difference", lambda *args: None)
    assert named(ledgers.another_version(SCENE), "ledger/version").broken


@pytest.mark.parametrize(
    ("attack", "name"), [(ledgers.called_missing, "ledger/cohort"), (ledgers.over_budget, "ledger/budget")]
)
def test_a_site_without_a_budget_is_noticed(monkeypatch, attack, name):
    monkeypatch.setattr(Budget, "check", lambda *args, **options: None)
    monkeypatch.setattr(Budget, "charge", lambda *args, **options: None)
    assert named(attack(SCENE), name).broken


def test_a_site_that_draws_noise_anew_is_noticed(monkeypatch):
    monkeypatch.setattr(noise.KeptNoise, "get", lambda self, key, draw: draw())
    assert named(ledgers.averaged(SCENE), "ledger/averaged").broken


def test_a_site_that_refuses_sums_below_its_own_is_noticed(monkeypatch):
    made = Others.of

    def of(sums, own, place, **options):
        if (sums.cost < own).any():
            raise ProtocolError("less than its own")
        return made(sums, own, place, **options)

    monkeypatch.setattr(Others, "of", of)
    assert named(refusals.false_sums(SCENE), "refusals/false-sums").broken


def test_a_refusal_for_another_reason_is_not_as_claimed():
    found = sites.stopped("a", "b", "c", ["pins", "malformed"], by="pins")
    assert not found.broken
    assert not found.as_claimed
    assert sites.stopped("a", "b", "c", ["pins", None], by="pins").broken
    assert sites.stopped("a", "b", "c", ["pins"], by="pins").as_claimed


def test_shares_that_stay_when_another_site_s_data_change_are_noticed(monkeypatch):
    assert not named(ledgers.changed_elsewhere(SCENE), "ledger/changed").broken
    monkeypatch.setattr("silograph.federation.site.masking.together_of", lambda names: "the same")
    assert named(ledgers.changed_elsewhere(SCENE), "ledger/changed").measured == 3
