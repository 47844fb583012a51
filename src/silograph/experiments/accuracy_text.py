"""The accuracy page: tables, and sentences made from the numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from silograph.experiments.contest import ALONE, COUPLINGS, DEFAULT, QUORUM, STABLE
from silograph.experiments.degrees import TOLD, is_kept
from silograph.experiments.families import Family
from silograph.experiments.lab import SECONDS, Arrays
from silograph.experiments.peers import PEERS, installed
from silograph.experiments.signs import signs_text

WORTH = 0.01  # average precision that is worth telling
GRAPHS = ("personal", "consensus")
NODES = (10, 25, 50, 100, 201)  # bounds of the rows that tell of degrees
QUICK_LOOK = "*A quick look: few draws of few families. Not for conclusions.*"
Values = Mapping[str, np.ndarray]  # by method, (draws, 2): personal and consensus


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that the page tells."""

    values: Mapping[Family, Values]
    contests: Mapping[Family, Sequence[Arrays]]
    signed: Mapping[Family, Sequence[Arrays]]
    stable: Mapping[Family, Sequence[Arrays]]
    degrees: Sequence[Arrays]
    draws: Mapping[Family, int]
    halves: int
    quick: bool


def text_of(found: Found) -> str:
    """The page without its title."""
    parts = [
        *([QUICK_LOOK] if found.quick else []),
        _beaten(found.values),
        _precision_table(found.values, 0),
        _precision_table(found.values, 1),
        signs_text(found.values, found.signed, [peer.name for peer in PEERS]),
        _coupling(found.contests),
        _degrees(found.degrees),
        _calibration(found.stable, found.halves),
        _settings(found),
    ]
    return "\n\n".join(parts) + "\n"


# --- average precision ------------------------------------------------------------------------------------------------


def _beaten(values: Mapping[Family, Values]) -> str:
    """First of all: where another method is better by more than a hundredth."""
    rows = [row for family, by_method in values.items() for row in _better(family, by_method)]
    n = len(GRAPHS) * len(values)
    title = "## Where the default is beaten"
    if not rows:
        return f"{title}\n\nNowhere on this page by more than {WORTH}."
    without = {(row[0], row[1]) for row in rows if not row[-1]}
    said = (
        f"In average precision, by more than {WORTH} in the mean, paired over draws (± standard error): in "
        f"{len({(row[0], row[1]) for row in rows})} of {n} comparisons (a family, and personal or consensus graphs), "
        f"{len(without)} of them on families without negative partial correlations. The default is "
        "`ConsensusGraph()`. A graph of weights ≥ 0 cannot show negative partial correlations at all."
    )
    head = ["family", "graphs", "better", "by", "draws"]
    return "\n\n".join((title, said, _table(head, [row[:-1] for row in rows])))


def _better(family: Family, by_method: Values) -> Iterable[list[str]]:
    for place, graphs in enumerate(GRAPHS):
        for name, found in by_method.items():
            apart = found[:, place] - by_method[DEFAULT][: len(found), place]
            if name != DEFAULT and apart.mean() > WORTH:
                by = f"{apart.mean():.3f} ± {_error(apart):.3f}"
                yield [family.label, graphs, name, by, str(len(apart)), "negative" if family.has_negative else ""]


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


# --- what is chosen ---------------------------------------------------------------------------------------------------


def _coupling(contests: Mapping[Family, Sequence[Arrays]]) -> str:
    rows, regrets, gains = [], [], []
    for family, found in contests.items():
        paths, auto = np.array([one["path"] for one in found]), np.array([one[DEFAULT] for one in found])
        alone = np.array([one[ALONE] for one in found])
        regret, gained = (paths.max(axis=1) - auto).mean(axis=0), auto[:, 0] - alone[:, 0]
        regrets.append(regret)
        gains.append(gained)
        chosen = np.median([float(one["coupling"]) for one in found])
        cost = np.median([float(one[DEFAULT + SECONDS]) for one in found])
        numbers = (chosen, auto[:, 0].mean(), alone[:, 0].mean(), gained.min(), *regret)
        rows.append([family.label, *(f"{number:.3f}" for number in numbers), f"{cost:.2f} s"])
    mean, every = np.mean(regrets, axis=0), np.concatenate(gains)
    said = (
        f"The default against the best of the couplings {', '.join(f'{c:g}' for c in COUPLINGS)}, the best being "
        f"chosen anew, with the truth, for each draw and each kind of graph. Mean regret over the families: "
        f"{mean[0]:.3f} personal, {mean[1]:.3f} consensus. Against each silo alone, the least mean gain of a family is "
        f"{min(one.mean() for one in gains):+.3f}; of {len(every)} single draws, {int((every < -WORTH).sum())} are "
        f"worse than alone by more than {WORTH} (personal graphs; the worst by {max(-every.min(), 0):.3f})."
    )
    head = ["family", "coupling (median)", "personal", "each alone", "least gain of a draw", "regret, personal"]
    head += ["regret, consensus", "time of the default (median)"]
    return "\n\n".join(("## The coupling that is chosen", said, _table(head, rows)))


def _degrees(found: Sequence[Arrays]) -> str:
    told = np.array([one["told"] for one in found]).T
    nodes, silos, coupling, asked, got, farthest, optimum, rounds, gap, pooled = (told[k] for k in range(len(TOLD)))
    seconds = np.array([float(one["degree" + SECONDS]) for one in found])
    rows = []
    for low, high in pairwise(NODES):
        here = (nodes >= low) & (nodes < high)
        if not here.any():
            continue
        apart = np.abs(got[here] / asked[here] - 1).max()
        rows.append(
            [
                f"{low} to {high - 1}",
                str(here.sum()),
                f"{silos[here].min():.0f} to {silos[here].max():.0f}",
                f"{apart:.1%}",
                f"{np.median(optimum[here] / asked[here]):.1f}",
                f"{np.median(rounds[here]):.0f}, {rounds[here].max():.0f}",
                f"{np.median(seconds[here]):.2f} s, {seconds[here].max():.2f} s",
            ]
        )
    n = len(found)
    said = (
        f"{n} random studies: {nodes.min():.0f} to {nodes.max():.0f} nodes, {silos.min():.0f} to {silos.max():.0f} "
        f"silos, a coupling from {coupling.min():.2f} to {coupling.max():.2f}, a degree from {asked.min():g} to "
        f"{asked.max():g}. The mean degree of the silos' graphs is within 5 % of the one asked for, or half an edge "
        f"per graph, in {is_kept(asked, got, nodes).sum()} of {n}; that of the silo farthest from it in "
        f"{is_kept(asked, farthest, nodes).sum()} of {n}; that of one-shot's consensus in "
        f"{is_kept(asked, pooled, nodes).sum()} of {n}. All optima are certified: the largest gap is {gap.max():.1e}. "
        "Time is that of one thread, beside another such study."
    )
    head = ["nodes", "studies", "silos", "farthest", "edges of the optimum, of those kept", "rounds (median, most)"]
    return "\n\n".join(("## The degree that is asked for", said, _table([*head, "time (median, most)"], rows)))


# --- stability --------------------------------------------------------------------------------------------------------


def _calibration(stable: Mapping[Family, Sequence[Arrays]], halves: int) -> str:
    rows = []
    for family, found in stable.items():
        for kind, key in (("consensus", "shared"), ("personal", "own"), (f"quorum of {QUORUM}", "quorum")):
            counts = np.array([one[key] for one in found]).reshape(-1, found[0][key].shape[-1])
            n, true = counts[:, :2].mean(axis=0)
            share = f"{true / n:.3f}" if n else "none is stable"
            bound = f"{counts[:, 2].mean():.2f}" if counts.shape[1] > 2 else ""
            rows.append([family.label, kind, f"{n:.1f}", share, f"{n - true:.2f}", bound])
    head = ["family", "graphs", "stable pairs", "true, of these", "false (realised)", "false (bound)"]
    said = (
        f"Pairs that are an edge in at least {STABLE:.0%} of {halves} half-samples, in the mean over draws (and "
        f"silos), and edges that are that stable in {QUORUM} silos. The bound is on the expected number of stable "
        "pairs that a half-sample has no more often than pairs at random: that is all false pairs on null data. On the "
        "others, false pairs that the data favour (neighbours of one node, edges that some silos have and the "
        "consensus has not) are beyond it."
    )
    ranked = np.array([one["ranked"] for found in stable.values() for one in found if "ranked" in one]).mean(axis=0)
    averaged = (
        "Scores averaged over half-samples are a ranking of their own: over these families their mean average "
        f"precision is {ranked[1, 0]:.3f} personal and {ranked[1, 1]:.3f} consensus; scores of all rows have "
        f"{ranked[0, 0]:.3f} and {ranked[0, 1]:.3f}."
    )
    return "\n\n".join(("## Are stable edges true?", said, _table(head, rows), averaged))


# --- how it was done --------------------------------------------------------------------------------------------------


def _settings(found: Found) -> str:
    absent = [peer.package for peer in PEERS if installed(peer.package) is None]
    versions = ", ".join(sorted({f"{p.package} {installed(p.package)}" for p in PEERS if installed(p.package)}))
    lines = [
        f"- {family.label}: {family.says}; N = {', '.join(map(str, family.n_samples))}; {n} draws."
        for family, n in found.draws.items()
    ]
    missing = f" Not installed, and so not here: {', '.join(absent)}." if absent else ""
    said = (
        "Silos share seven tenths of their edges. No method sees the truth, and each is called by its defaults: here "
        "that is `ConsensusGraph()` and the same with another `method`, and `PartialCorrelationGraph()` under "
        '"partial correlation". Peers choose their penalty by held-out likelihood. Data are not standardised, as nodes '
        "have one unit, but by `PartialCorrelationGraph`. "
        f"Peers ({versions}) run at 20 and 50 nodes.{missing} The rule "
        "that chooses the coupling, and the degree of silos alone, were set on other draws of graphs of the first four "
        "kinds; what silos count in the consensus' rank, on other draws of these, of unequal N and of the outlier; "
        "`PartialCorrelationGraph` on other draws of the signed ones. Nothing was set on these draws."
    )
    return "\n".join(["## Settings", "", said, "", *lines, "", "`make accuracy` writes this page anew."])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
