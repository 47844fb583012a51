"""Both ways: what is unprotected is broken, what claims protection is not; and an attack notices what it should.

False alarms: each test of chance is two-sided at ALARM = 1e-8, and all tests of this folder together make fewer than 90
of them. So sound code fails here by chance in less than one of 1e6 runs (union bound). That sabotage goes unnoticed by
chance is as rare: `test_the_trials_suffice`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from silograph.audit import collusion, masked, noise, scene
from silograph.audit.attacks import attacks_on, run_attacks
from silograph.audit.findings import Finding
from silograph.audit.scene import LEAST_TRIALS, Scene
from silograph.audit.statistics import ALARM, advantage_of, variance_bounds
from silograph.errors import ParameterError
from silograph.privacy.accounting import multiplier_for
from silograph.privacy.masks import Masker
from silograph.privacy.noise import Noise
from silograph.privacy.settings import Privacy

SCENE = Scene(trials=LEAST_TRIALS)
UNPROTECTED = {
    "open/term", "open/rest", "open/versions", "masked/sum-of-two", "masked/last", "noise/one more", "weighted/outlier",
    "weighted/cap", "published/edges", "sites/open", "sites/sum", "sites/lonely-open", "refusals/ranges",
}  # fmt: skip
CONTROLS = {
    "masked/no-masks", "masked/kept-keys", "masked/no-pins", "noise/too-little", "noise/reused", "noise/wide",
    "ledger/no-ledger",
}  # fmt: skip
PROTECTED = {
    "masked/bits", "masked/bytes", "masked/correlation", "masked/term", "masked/rosters", "masked/keys", "masked/tasks",
    "masked/twice", "masked/all-but-two", "noise/e₁ or e₂", "noise/(e₁ ± e₂)/√2", "noise/share of site-01",
    "noise/share of site-02", "noise/share of site-03", "noise/fresh", "noise/saturation", "weighted/refused",
    "sites/masked", "sites/second-key", "sites/swapped-key", "sites/roster", "sites/restart", "sites/lonely-masked",
    "ledger/version", "ledger/cohort", "ledger/budget", "ledger/averaged", "ledger/changed",
    "refusals/no-ranges", "refusals/false-sums",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    return {finding.name: finding for finding in run_attacks(SCENE, lambda what, part: None)}


def test_every_attack_is_listed_here(found):
    assert set(found) == UNPROTECTED | CONTROLS | PROTECTED
    assert ALARM * 2 * len(found) <= 1e-6


@pytest.mark.parametrize("name", sorted(UNPROTECTED))
def test_what_is_not_protected_is_broken(found, name):
    assert found[name].verdict == "broken"
    assert not found[name].protected
    assert found[name].as_claimed


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_a_protection_that_was_taken_out_is_missed(found, name):
    assert found[name].verdict == "broken"
    assert found[name].control
    assert found[name].as_claimed


@pytest.mark.parametrize("name", sorted(PROTECTED))
def test_what_claims_protection_holds(found, name):
    assert found[name].verdict == "holds", found[name]
    assert found[name].protected
    assert found[name].as_claimed


# --- noise ---------------------------------------------------------------------------------------------------------


def test_the_trials_suffice():
    """Noise 1.3 times too small goes unnoticed with less than 1e-6: its variance is that of χ², divided by 1.69."""
    n = 2 * LEAST_TRIALS  # both worlds
    low, _ = variance_bounds(n)
    assert chi2.sf(low * noise.TOO_SMALL**2 * n, n) < 1e-6


def test_the_advantage_is_the_gaussians(found):
    """2Φ(1/(2σ₁)) − 1, .098 at ε = 1; the bound that (ε, δ) gives, .462, would pass noise four times too small."""
    should_be = advantage_of(multiplier_for(1, 1e-5))
    finding = found["noise/(e₁ ± e₂)/√2"]
    assert finding.low < should_be < finding.high < found["noise/too-little"].measured
    assert finding.high < 1.25 * should_be


def test_the_worst_canaries_are_as_far_apart_as_rows_can_be():
    """The best test sees the whole Frobenius distance of their moments, √2/N, though costs are all that is released."""
    first, second = (noise.costs_with(SCENE, direction) for direction in noise.CANARIES["(e₁ ± e₂)/√2"])
    apart = SCENE.n_rows * (second - first)
    assert apart @ np.linalg.solve(noise.covariance(), apart) == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize(
    "privacy",
    [
        Privacy(sums="open", epsilon=0.5, delta=1e-6, min_samples=100),
        Privacy(sums="masked", epsilon=2.0, delta=1e-5, unit="table", rows=3.0, collusion=2),
    ],
    ids=["open", "tables, two colluders"],
)
def test_other_settings_have_the_advantage_that_their_own_noise_should_have(privacy):
    finding = noise.canaries(replace(SCENE, privacy=privacy, n_sites=4))[1]
    should_be = advantage_of(multiplier_for(privacy.epsilon, privacy.delta))
    assert finding.as_claimed
    assert finding.low < should_be < finding.high


def test_noise_that_code_draws_too_small_is_noticed(monkeypatch):
    drawn = Noise.draw
    monkeypatch.setattr(Noise, "draw", lambda self, pairs: np.round(drawn(self, pairs) / noise.TOO_SMALL))
    assert [finding.broken for finding in noise.canaries(SCENE)] == [True, True]
    assert all(finding.broken for finding in noise.shares(SCENE))


def test_noise_that_code_draws_too_large_is_no_breach_and_still_not_as_claimed(monkeypatch):
    drawn = Noise.draw
    monkeypatch.setattr(Noise, "draw", lambda self, pairs: drawn(self, pairs) * 2)
    for finding in noise.shares(SCENE):
        assert not finding.broken
        assert not finding.as_claimed


def test_noise_that_code_draws_once_and_for_all_is_noticed(monkeypatch):
    once = scene.Scene.noise(SCENE).draw(scene.PAIRS)
    monkeypatch.setattr(Noise, "draw", lambda self, pairs: once)
    (fresh,) = [finding for finding in noise.reused(SCENE) if finding.name == "noise/fresh"]
    assert fresh.broken


# --- masks ---------------------------------------------------------------------------------------------------------


def test_masks_that_are_none_are_noticed(monkeypatch):
    monkeypatch.setattr(Masker, "_mask", lambda self, limbs, part, where: limbs)
    assert all(finding.broken for finding in masked.generator(SCENE))
    assert masked.two_terms(SCENE)[0].broken
    assert collusion.all_but_two(SCENE)[0].broken


def test_masks_that_do_not_depend_on_what_was_told_are_noticed(monkeypatch):
    made = Masker._mask
    monkeypatch.setattr(Masker, "_mask", lambda self, limbs, part, where: made(self, limbs, part, (b"H",)))
    told = {finding.name: finding.broken for finding in masked.told_differently(SCENE)}
    assert told == {"masked/rosters": True, "masked/keys": False, "masked/tasks": True}


def test_masks_that_are_used_twice_are_noticed(monkeypatch):
    once = Masker.mask

    def forgetful(self, parts, **where):
        self._used.clear()
        return once(self, parts, **where)

    monkeypatch.setattr(Masker, "mask", forgetful)
    assert collusion.two_time_pad(SCENE)[0].broken


# --- which attacks -------------------------------------------------------------------------------------------------


def test_settings_choose_the_attacks_that_concern_them():
    def names(**settings) -> set[str]:
        return {attack.__name__ for attack in attacks_on(replace(SCENE, everything=False, **settings))}

    bare = names(privacy=Privacy())
    assert bare == {"one_round", "two_versions", "published", "another_version", "ranges"}
    assert names(privacy=Privacy(), sums=2) == bare | {"outlier", "common_weight"}
    hidden = names(privacy=Privacy(sums="masked"))
    assert "two_terms" in hidden
    assert "canaries" not in hidden
    assert "one_round" not in hidden
    assert "canaries" in names(privacy=Privacy(epsilon=1.0, delta=1e-5, min_samples=50))


def test_too_few_trials_are_refused():
    with pytest.raises(ParameterError, match="500 at least"):
        Scene(trials=100)
