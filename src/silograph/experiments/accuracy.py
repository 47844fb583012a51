"""How good the default is, on families with known truth, beside other methods; and whether stable edges are true.

Every sentence with a number is made from the results (accuracy_text.py).
"""

from collections.abc import Sequence

import numpy as np

from silograph.experiments.accuracy_text import Found, text_of
from silograph.experiments.contest import Calibration, Contest, PeerContest, run_calibration, run_contest, run_peer
from silograph.experiments.degrees import DegreeDraw, run_degree
from silograph.experiments.families import DEMO, Family, families, null
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.outcome import Outcome, Page
from silograph.experiments.peers import PEERS, installed
from silograph.experiments.session import Session
from silograph.experiments.signs import PARTIAL, SignedDraw, run_signed

SMALL, SEEDS = 20, 20  # nodes, and draws
LARGER, LARGEST = {50: 5, 100: 3}, 100  # draws by nodes; peers are slow at the largest
STUDIES = 120  # of random degree
HALVES = 50


def run(session: Session) -> Outcome:
    """Learn from every draw by every method."""
    quick, seeds = session.scale.is_quick, min(session.scale.seeds, SEEDS)
    small = families(SMALL)[: 2 if quick else None]
    more = {} if quick else {family: n for d, n in LARGER.items() for family in families(d)}
    counts = {**dict.fromkeys((*small, DEMO), seeds), **more}
    contests = {
        family: session.lab.results(
            f"accuracy: {family.label}", run_contest, [Contest(family=family, seed=k) for k in range(n)]
        )
        for family, n in counts.items()
    }
    signed = {
        family: session.lab.results(
            f"signs: {family.label}", run_signed, [SignedDraw(family=family, seed=k) for k in range(n)]
        )
        for family, n in {**counts, null(SMALL): seeds}.items()
    }
    values = {
        family: _values(found) | {PARTIAL: np.array([one[PARTIAL] for one in signed[family]])}
        for family, found in contests.items()
    }
    for family, n in counts.items():
        if family.n_nodes < LARGEST:
            values[family] = values[family] | _peers(session, family, n)
    stable = {
        family: session.lab.results(
            f"stability: {family.label}",
            run_calibration,
            [Calibration(family=family, seed=k, halves=HALVES) for k in range(seeds)],
        )
        for family in (null(SMALL), *small)
    }
    studies = [DegreeDraw(seed=k) for k in range(seeds if quick else STUDIES)]
    degrees = session.lab.results("degree asked for and delivered", run_degree, studies)
    found = Found(
        values=values,
        contests=contests,
        signed=signed,
        stable=stable,
        degrees=degrees,
        draws=counts,
        halves=HALVES,
        quick=quick,
    )
    return Outcome(pages=(Page(name="accuracy", title="How good it is, against known truth", text=text_of(found)),))


def _values(found: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """By method, (draws, 2): average precision of personal and consensus graphs."""
    names = [name for name, value in found[0].items() if value.shape == (2,) and not name.endswith(SECONDS)]
    return {name: np.array([one[name] for one in found]) for name in names}


def _peers(session: Session, family: Family, draws: int) -> dict[str, np.ndarray]:
    out = {}
    for peer in PEERS:
        version = installed(peer.package)
        if version is None:
            continue
        jobs = [PeerContest(family=family, seed=k, peer=peer.name, version=version) for k in range(draws)]
        found = session.lab.results(f"{peer.name}: {family.label}", run_peer, jobs)
        out[peer.name] = np.array([one[peer.name] for one in found])
    return out
