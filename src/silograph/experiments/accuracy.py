"""How good the default is, on families with known truth, beside other methods; and whether stable edges are true.

Every sentence with a number is made from the results.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from silograph.experiments.contest import (
    ALONE,
    COUPLINGS,
    DEFAULT,
    STABLE,
    Calibration,
    Contest,
    PeerContest,
    run_calibration,
    run_contest,
    run_peer,
)
from silograph.experiments.families import DEMO, Family, families, null
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.outcome import Outcome, Page
from silograph.experiments.peers import PEERS, installed
from silograph.experiments.session import Session

SEEDS, FEW_SEEDS, LARGER = 20, 5, 50  # draws at 20 nodes, and at more
HALVES = 50
WORTH = 0.01  # average precision that is worth telling
GRAPHS = ("personal", "consensus")
Values = Mapping[str, np.ndarray]  # by method, (seeds, 2): personal and consensus


def run(session: Session) -> Outcome:
    """Learn from every draw by every method."""
    quick = session.scale.is_quick
    seeds = session.scale.seeds if quick else max(SEEDS, min(session.scale.seeds, SEEDS))
    small = families(20)[: 2 if quick else None]
    large = () if quick else families(LARGER)
    counts = {family: FEW_SEEDS if family in large else seeds for family in (*small, DEMO, *large)}
    contests = {
        family: session.lab.results(
            f"accuracy: {family.label}", run_contest, [Contest(family=family, seed=k) for k in range(n)]
        )
        for family, n in counts.items()
    }
    values = {family: _values(found) for family, found in contests.items()}
    for family in small:
        values[family] = values[family] | _peers(session, family, seeds)
    stable = {
        family: session.lab.results(
            f"stability: {family.label}",
            run_calibration,
            [Calibration(family=family, seed=k, halves=HALVES) for k in range(seeds)],
        )
        for family in (null(20), *small)
    }
    text = "\n\n".join(
        (
            _beaten(values),
            _precision_table(values, 0),
            _precision_table(values, 1),
            _coupling(contests),
            _calibration(stable),
            _settings(counts, seeds),
        )
    )
    return Outcome(pages=(Page(name="accuracy", title="How good it is, against known truth", text=text),))


def _values(found: Sequence[Arrays]) -> dict[str, np.ndarray]:
    names = [name for name, value in found[0].items() if value.shape == (2,) and not name.endswith(SECONDS)]
    return {name: np.array([one[name] for one in found]) for name in names}


def _peers(session: Session, family: Family, seeds: int) -> dict[str, np.ndarray]:
    out = {}
    for peer in PEERS:
        version = installed(peer.package)
        if version is None:
            continue
        n = min(seeds, peer.most_seeds or seeds)
        jobs = [PeerContest(family=family, seed=k, peer=peer.name, version=version) for k in range(n)]
        found = session.lab.results(f"{peer.name}: {family.label}", run_peer, jobs)
        out[peer.name] = np.array([one[peer.name] for one in found])
    return out


def _beaten(values: Mapping[Family, Values]) -> str:
    """First of all: where another method is better by more than a hundredth."""
    lines = []
    for family, by_method in values.items():
        for place, graphs in enumerate(GRAPHS):
            for name, found in by_method.items():
                apart = found[:, place] - by_method[DEFAULT][: len(found), place]
                if name != DEFAULT and apart.mean() > WORTH:
                    negative = ", which has negative partial correlations" if family.has_negative else ""
                    lines.append(
                        f"- {family.label}{negative}: {graphs} graphs of {name} are better by "
                        f"{apart.mean():.3f} ± {_error(apart):.3f} ({len(apart)} draws)."
                    )
    if not lines:
        return f"## Where the default is beaten\n\nNowhere on this page by more than {WORTH}."
    said = f"In average precision, by more than {WORTH} in the mean, paired over draws (± standard error):"
    return "\n".join(["## Where the default is beaten", "", said, "", *lines])


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _precision_table(values: Mapping[Family, Values], place: int) -> str:
    names = list(dict.fromkeys(name for by_method in values.values() for name in by_method))
    rows = [
        [family.label, *(_cell(by_method.get(name), place, by_method) for name in names)]
        for family, by_method in values.items()
    ]
    title = f"## Average precision of {GRAPHS[place]} graphs"
    return "\n\n".join((title, _table(["family", *names], rows)))


def _cell(found: np.ndarray | None, place: int, by_method: Values) -> str:
    if found is None:
        return ""
    best = max(one[:, place].mean() for one in by_method.values())
    mean = found[:, place].mean()
    return f"**{mean:.3f}**" if mean >= best - 0.0005 else f"{mean:.3f}"


def _coupling(contests: Mapping[Family, Sequence[Arrays]]) -> str:
    rows, regrets = [], []
    for family, found in contests.items():
        paths, auto = np.array([one["path"] for one in found]), np.array([one[DEFAULT] for one in found])
        alone = np.array([one[ALONE] for one in found])
        regret = (paths.max(axis=1) - auto).mean(axis=0)
        regrets.append(regret)
        chosen = np.median([float(one["coupling"]) for one in found])
        gained = (auto - paths[:, COUPLINGS.index(0.0)]).mean(axis=0)
        numbers = (chosen, auto[:, 0].mean(), alone[:, 0].mean(), gained[0], *regret)
        rows.append([family.label, *(f"{number:.3f}" for number in numbers)])
    mean = np.mean(regrets, axis=0)
    head = ["family", "coupling (median)", "personal", "each alone", "gain over coupling 0", "regret, personal"]
    said = (
        f"The default against the best of the couplings {', '.join(f'{c:g}' for c in COUPLINGS)}, the best being "
        f"chosen anew, with the truth, for each draw and each kind of graph. Mean regret over the families: "
        f"{mean[0]:.3f} personal, {mean[1]:.3f} consensus."
    )
    return "\n\n".join(("## The coupling that is chosen", said, _table([*head, "regret, consensus"], rows)))


def _calibration(stable: Mapping[Family, Sequence[Arrays]]) -> str:
    rows = []
    for family, found in stable.items():
        for kind, key in (("consensus", "shared"), ("personal", "own")):
            counts = np.array([one[key] for one in found]).reshape(-1, 3)
            n, true, bound = counts.mean(axis=0)
            share = f"{counts[:, 1].sum() / counts[:, 0].sum():.3f}" if counts[:, 0].sum() else "none is stable"
            rows.append([family.label, kind, f"{n:.1f}", share, f"{n - true:.2f}", f"{bound:.2f}"])
    head = ["family", "graphs", "stable pairs", "true, of these", "false (realised)", "false (bound)"]
    said = (
        f"Pairs that are an edge in at least {STABLE:.0%} of {HALVES} half-samples, in the mean over draws (and "
        "silos). The bound is on the expected number of stable pairs that a half-sample has no more often than pairs "
        "at random: that is all false pairs on null data. On the others, false pairs that the data favour (neighbours "
        "of one node, edges that some silos have and the consensus has not) are beyond it."
    )
    return "\n\n".join(("## Are stable edges true?", said, _table(head, rows)))


def _settings(counts: Mapping[Family, int], seeds: int) -> str:
    absent = [peer.package for peer in PEERS if installed(peer.package) is None]
    versions = ", ".join(sorted({f"{p.package} {installed(p.package)}" for p in PEERS if installed(p.package)}))
    lines = [
        f"- {family.label}: {family.says}; N = {', '.join(map(str, family.n_samples))}; {n} draws."
        for family, n in counts.items()
    ]
    few = [f"{p.name} has {min(p.most_seeds, seeds)} draws, as it is slow." for p in PEERS if p.most_seeds]
    missing = f" Not installed, and so not here: {', '.join(absent)}." if absent else ""
    said = (
        "Silos share seven tenths of their edges. No method sees the truth, and each is called by its defaults: here "
        "that is `ConsensusGraph()` and the same with another `method`. Peers choose their penalty by held-out "
        "likelihood. Data are not standardised, as nodes have one unit. "
        f"Peers ({versions}) run at 20 nodes. {' '.join(few)}{missing} The rule "
        "that chooses the coupling, and the degree of silos alone, were set on other draws of graphs of the first four "
        "kinds; nothing was set on the others, nor on these draws."
    )
    return "\n".join(["## Settings", "", said, "", *lines, "", "`make accuracy` writes this page anew."])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
