"""Masked terms: they look like noise, and add up only among sites that were told the same."""

from collections.abc import Callable

import numpy as np
from scipy.stats import chi2

from silograph._util.types import Vector
from silograph.audit.findings import Finding
from silograph.audit.scene import PAIRS, Scene, added, fresh_keys, from_ring, masked, masker_of, to_ring
from silograph.audit.statistics import ALARM, bits_of, distinguish, guess_bounds, mean_bound
from silograph.protocol.fixed import Limbs

SITES = ("kyoto", "lima", "oslo")
LARGE, SMALL = np.full(PAIRS.size, 4.0), np.zeros(PAIRS.size)  # two terms that could not differ more


def generator(scene: Scene) -> list[Finding]:
    """Bits, bytes and correlation of masked terms: a smoke test, in which a broken generator would show."""
    terms = np.random.default_rng(scene.seed).uniform(0, 4, (scene.trials, PAIRS.size))
    sent = np.array([_sent(term) for term in terms])
    bits = bits_of(sent)
    counts = np.bincount(sent.view(np.uint8).ravel(), minlength=256)
    square = float(((counts - counts.mean()) ** 2 / counts.mean()).sum() / 255)
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], 255) / 255
    numbers = np.concatenate([from_ring(one) for one in sent])
    along = abs(float(np.corrcoef(numbers, terms.ravel())[0, 1]))
    bias = abs(2 * float(bits.mean()) - 1)
    return [
        holding(scene, "masked/bits", "bits that are more often 1 than 0", bias, (0, mean_bound(bits.size)), "bias"),
        holding(
            scene, "masked/bytes", "bytes that come more often than others", square, (float(low), float(high)), "χ²/255"
        ),
        holding(
            scene,
            "masked/correlation",
            "whether they follow the term",
            along,
            (0, mean_bound(terms.size)),
            "correlation",
        ),
    ]


def two_terms(scene: Scene) -> list[Finding]:
    """Which of two chosen terms a site has sent: masked, and as a control without masks."""
    masks = _tell(scene, lambda term: _sent(term))
    bare, tries = distinguish(*(np.array([bits_of(to_ring(term))] * scene.trials) for term in (SMALL, LARGE)))
    return [
        holding(scene, "masked/term", "which of two terms was sent", *masks),
        Finding(
            name="masked/no-masks",
            who="coordinator",
            holds="one answer, no masks",
            attack="which of two terms was sent",
            measure="advantage",
            measured=bare,
            low=1.0,
            high=1.0,
            broken=bare > guess_bounds(tries)[1],
            protected=False,
            control=True,
            trials=scene.trials,
        ),
    ]


def told_differently(scene: Scene) -> list[Finding]:
    """Sites that were given different rosters, keys or tasks: what they add up to tells nothing."""
    ways: dict[str, Callable[[Vector], Limbs]] = {
        "rosters": lambda term: _sum(term, transcript=b"another roster"),
        "keys": lambda term: _sum(term, other_key=True),
        "tasks": lambda term: _sum(term, task=b"another task"),
    }
    return [
        holding(
            scene,
            f"masked/{what}",
            f"give one site other {what}, and add up",
            *_tell(scene, way),
            holds="all masked answers",
        )
        for what, way in ways.items()
    ]


def holding(
    scene: Scene,
    name: str,
    attack: str,
    measured: float,
    between: tuple[float, float],
    measure: str = "advantage",
    *,
    who: str = "coordinator",
    holds: str = "masked answers",
) -> Finding:
    """An attack that is claimed to fail: broken where the number is beyond what chance explains."""
    low, high = between
    return Finding(
        name=name,
        who=who,
        holds=holds,
        attack=attack,
        measure=measure,
        measured=measured,
        low=low,
        high=high,
        broken=not low <= measured <= high,
        protected=True,
        trials=scene.trials,
    )


def _tell(scene: Scene, see: Callable[[Vector], Limbs]) -> tuple[float, tuple[float, float]]:
    """The advantage in telling which term is behind what is seen, and where that of guessing lies."""
    worlds = [np.array([bits_of(see(term)) for _ in range(scene.trials)]) for term in (SMALL, LARGE)]
    advantage, tries = distinguish(*worlds)
    return advantage, guess_bounds(tries)


def _sent(term: Vector) -> Limbs:
    """A masked answer of oslo, with keys of its own."""
    return masked(masker_of("oslo", fresh_keys(SITES)), to_ring(term))


def _sum(term: Vector, *, transcript: bytes = b"H", task: bytes = b"task", other_key: bool = False) -> Limbs:
    """The sum where oslo was told something else than the others, whose terms are known to be zero."""
    keys = fresh_keys(SITES)
    told = keys | fresh_keys(["lima"]) if other_key else keys
    sent = [masked(masker_of(name, keys), to_ring(SMALL)) for name in ("kyoto", "lima")]
    odd = masked(masker_of("oslo", told, transcript=transcript), to_ring(term), task=task)
    return added([*sent, odd])
