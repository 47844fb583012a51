"""Who tells the server their secrets, and who poses as others: what masks leave then."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from silograph.audit.findings import Finding, recovered
from silograph.audit.masked import LARGE, SITES, SMALL, holding
from silograph.audit.scene import Keys, Scene, added, costs_of, fresh_keys, from_ring, masked, masker_of, to_ring
from silograph.audit.statistics import bits_of, distinguish, guess_bounds, relative_error
from silograph.errors import ProtocolError
from silograph.privacy.masks import Masker, shared_secret
from silograph.protocol.fixed import Limbs, subtract_limbs, zeros


def all_but_one(scene: Scene) -> list[Finding]:
    """Server and all sites but two have the sum of the two; with all but one, the last one's term."""
    keys, terms = fresh_keys(scene.sites), [to_ring(costs_of(table)) for table in scene.tables()]
    sent = [masked(masker_of(name, keys), term) for name, term in zip(scene.sites, terms, strict=True)]
    first, second = scene.sites[:2]
    rest = scene.sites[2:]
    two = added([_without_masks(sent[0], first, rest, keys), _without_masks(sent[1], second, rest, keys)])
    one = _without_masks(sent[0], first, (second, *rest), keys)
    return [
        _known("masked/sum-of-two", "all but two sites", "the sum of the two", two, added(terms[:2])),
        _known("masked/last", "all but one site", "the last site's term", one, terms[0]),
    ]


def all_but_two(scene: Scene) -> list[Finding]:
    """Server and all sites but two: which of the two sent which term stays hidden."""
    kyoto, lima, oslo = SITES

    def see(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        keys = fresh_keys(SITES)
        sent = [
            _without_masks(masked(masker_of(name, keys), to_ring(term)), name, (oslo,), keys)
            for name, term in ((kyoto, first), (lima, second))
        ]
        return np.concatenate([bits_of(one) for one in sent])

    worlds = [np.array([see(*terms) for _ in range(scene.trials)]) for terms in ((SMALL, LARGE), (LARGE, SMALL))]
    advantage, tries = distinguish(*worlds)
    attack, holds = "which of the two sent which term", "answers, all others' secrets"
    bounds = guess_bounds(tries)
    return [holding(scene, "masked/all-but-two", attack, advantage, bounds, who="all but two sites", holds=holds)]


def without_pins(scene: Scene) -> list[Finding]:
    """A coordinator that gives a site keys of its own in the names of all others, if nobody checks whose they are."""
    true, false = fresh_keys(scene.sites), fresh_keys(scene.sites)
    victim, term = scene.sites[0], to_ring(costs_of(scene.tables()[0]))
    told = {**false, victim: true[victim]}
    sent = masked(masker_of(victim, told), term)
    found = _without_masks(sent, victim, scene.sites[1:], told)
    known = _known("masked/no-pins", "", "pose as all other sites, where nobody pins keys", found, term)
    return [replace(known, who="coordinator", holds="one masked answer, keys of its own", control=True)]


def two_time_pad(scene: Scene) -> list[Finding]:
    """The same masks on two answers: refused; a control shows what the difference would be."""
    keys, (table, *_) = fresh_keys(SITES), scene.tables()
    before, after = to_ring(costs_of(table)), to_ring(costs_of(table[:-1]))
    masker = masker_of("oslo", keys)
    sent = masked(masker, before)
    again = masked(masker_of("oslo", keys), after)  # as if keys had been kept on disk over a restart
    difference = relative_error(from_ring(added([sent, _negative(again)])), costs_of(table) - costs_of(table[:-1]))
    return [
        Finding(
            name="masked/twice",
            who="coordinator",
            holds="one masked answer",
            attack="ask for the same masks with other data",
            measure="answers",
            measured=(answers := _answers_again(masker, after)),
            low=0.0,
            high=0.0,
            broken=answers > 0,
            protected=True,
        ),
        recovered(
            "masked/kept-keys",
            "two masked answers, keys kept on disk",
            "the difference of two versions",
            difference,
            most=1e-9,
            control=True,
        ),
    ]


def _answers_again(masker: Masker, term: Limbs) -> float:
    try:
        masked(masker, term)
    except ProtocolError:
        return 0.0
    return 1.0


def _without_masks(sent: Limbs, victim: str, known: Sequence[str], keys: Mapping[str, Keys]) -> Limbs:
    """A site's answer without the masks that it shares with sites whose keys are known: as these mask a zero."""
    taken = [sent]
    for name in known:
        secret = shared_secret(keys[name].private, keys[victim].public)
        masker = Masker(name=name, secrets={victim: secret}, transcript=b"H")
        taken.append(masked(masker, zeros(len(sent))))
    return added(taken)


def _negative(limbs: Limbs) -> Limbs:
    out = zeros(len(limbs))
    subtract_limbs(out, limbs)
    return out


def _known(name: str, who: str, attack: str, found: Limbs, truth: Limbs) -> Finding:
    error = relative_error(from_ring(found), from_ring(truth))
    return recovered(name, "masked answers, their secrets", attack, error, who=f"coordinator and {who}")
