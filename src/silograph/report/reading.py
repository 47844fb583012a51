"""What the numbers say, in sentences: what silos share, where each differs, who contributed, whether to trust it."""

from dataclasses import dataclass

import numpy as np

from silograph._util.types import IntVector, Matrix
from silograph.analysis.communities import modularity
from silograph.analysis.graphs import own_edges, own_part
from silograph.graph.graph import Graph
from silograph.report.evidence import kept_says, signs_say, stability_says
from silograph.report.measures import degree, shares, strength
from silograph.report.newcomer import alone_says, unusual_says
from silograph.runs.reader import RunData

CLEAR = 0.3  # modularity from which on communities are usually spoken of (Newman & Girvan 2004)
MOST_SILOS = 8  # of which each gets a sentence
NOT_ABOUT_DATA = ("degree", "convergence")  # of warnings
FAINT_PART = 0.1  # of the largest weight


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that a reader has, and sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


def reading(run: RunData, community: IntVector, alike: Matrix) -> tuple[Answer, ...]:
    """All answers; `alike` holds the overlaps of the silos' graphs that are here, where these are not too many."""
    if not run.silos:
        return (
            Answer("What does the graph show?", (*_shown(run.main, "graph"), *_groups(run.main, community))),
            Answer("Can I trust it?", _trust(run)),
        )
    if (told := run.record.newcomer) is not None:
        return (
            Answer("How unusual is it?", unusual_says(told)),
            Answer("Which edges are its own?", (*_differences(run, alike), *alone_says(told))),
            Answer("Can I trust it?", _trust(run)),
        )
    return (
        Answer("What do the silos share?", (*_shared(run), *_groups(run.main, community))),
        Answer("Where does each differ?", _differences(run, alike)),
        Answer("Who contributed how much?", _contributions(run)),
        Answer("Can I trust it?", _trust(run)),
        *_publishing(run),
    )


def percent(part: float) -> str:
    """A part of one, in words that do not round something to nothing."""
    if 0 < part < 0.005:
        return "less than 1%"
    return "more than 99%" if 0.995 <= part < 1 else f"{100 * part:.0f}%"


def scientific(value: float) -> str:
    """A small number as a person writes it, which no line break splits: 5.6·10⁻⁷."""
    digits, power = f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digits == "1.0" else f"{digits}·10{raised}"


def _shown(graph: Graph, what: str) -> tuple[str, ...]:
    if graph.n_edges == 0:
        return (f"The {what} is empty: none of the {graph.n_nodes} nodes is connected.",)
    alone = int((degree(graph) == 0).sum())
    lonely = {0: "No node is without a neighbour", 1: "1 node has no neighbour"}.get(
        alone, f"{alone} nodes have no neighbour"
    )
    best = int(strength(graph).argmax())
    return (
        f"The {what} has {counted(graph.n_edges, 'edge')} among {graph.n_nodes} nodes, {graph.mean_degree:.1f} "
        f"neighbours each on average. {lonely}.",
        f"{'Strongest edge' if graph.n_edges == 1 else 'Strongest edges'}: {_strongest(graph, 3)}. "
        f"Best connected node: {graph.names[best]}.",
    )


def _shared(run: RunData) -> tuple[str, ...]:
    own = [own_part(graph, run.main) for graph in run.graphs.values()]
    part = (
        (f"On average {percent(1 - float(np.mean(own)))} of a silo's edge weight lies on edges of the consensus.",)
        if own
        else ()
    )
    first, *rest = _shown(run.main, "consensus graph")
    return (*filter(None, [run.record.about]), first, *part, *rest)


def _groups(graph: Graph, community: IntVector) -> tuple[str, ...]:
    n_groups, clear = int(community.max(initial=0)) + 1, modularity(graph, community)
    if graph.n_edges == 0:
        return ()
    if n_groups == 1 or clear < CLEAR:
        return (f"Its nodes form no clear groups (modularity {max(clear, 0):.2f}; from about {CLEAR} on they would).",)
    return (f"Its nodes form {n_groups} groups (modularity {clear:.2f}), which order the matrices below.",)


def _differences(run: RunData, alike: Matrix) -> tuple[str, ...]:
    own = {name: own_part(graph, run.main) for name, graph in run.graphs.items()}
    order = sorted(own, key=lambda name: (-own[name], name))
    told = order[:MOST_SILOS]
    out = [_difference(name, run.graphs[name], run.main, own[name]) for name in told]
    if not any(own.values()) and len(own) > 1:
        same = all(graph == run.main for graph in run.graphs.values())
        out = [f"All edges of {'all' if len(own) == len(run.silos) else 'these'} silos are edges of the consensus"]
        out[0] += "; the graphs are the same." if same else "; only weights differ."
    elif len(order) > len(told):
        rest = len(order) - len(told)
        out.append(f"The other {rest} silos have less of their own." if rest > 1 else "The other silo has less.")
    lacking = [silo.name for silo in run.silos if silo.missing_nodes]
    if lacking:
        out.append(f"Not all nodes were observed by {_join_names(lacking)}: of edges there, nothing is known.")
    kept = [silo.name for silo in run.silos if not silo.graph_shared]
    if kept:
        out.append(f"{_join_names(kept)} {_keep(kept)}: nothing can be said of where {_they(kept)}.")
    if 2 < len(own) < len(alike):
        out.append(_extremes(list(run.graphs), alike))
    return tuple(out)


def _difference(name: str, graph: Graph, consensus: Graph, part: float) -> str:
    own = own_edges(graph, consensus)
    if not own.any():
        return f"{name}: all of its edges are edges of the consensus" + (
            ", and it is the same graph." if graph == consensus else "; only weights differ."
        )
    strongest = _strongest(graph, 1, own)
    return f"{name}: {percent(part)} of its weight is on edges of its own, most of all {strongest}."


def _extremes(names: list[str], alike: Matrix) -> str:
    rows, cols = np.triu_indices(len(names), 1)
    values = alike[: len(names), : len(names)][rows, cols]
    if float(np.ptp(values)) < 1e-9:
        return f"Every two silos are equally alike (overlap {values[0]:.2f})."
    low, high = int(values.argmin()), int(values.argmax())
    return (
        f"Most alike are {names[rows[high]]} and {names[cols[high]]} (overlap {values[high]:.2f}), "
        f"least {names[rows[low]]} and {names[cols[low]]} ({values[low]:.2f}); 1 would be the same graph."
    )


def _contributions(run: RunData) -> tuple[str, ...]:
    part, alone = shares(run.silos), len(run.silos) == 1  # at a site with one table
    if (part is None and not alone) or any(silo.contribution is None and not silo.is_consensus for silo in run.silos):
        return ("Not all silos told how near they are to the consensus, so contributions cannot be compared.",)
    about = "A contribution says how near a silo's graph is to the consensus, not how much data it has."
    fused = [silo.name for silo in run.silos if silo.is_consensus]
    if fused:
        who = "All silos" if len(fused) == len(run.silos) else _join_names(fused)
        return (f"{who} fused with the consensus: the graphs are the same, and the contribution γ is infinite.", about)
    if part is None:
        (silo,) = run.silos
        return (f"{silo.name}: γ = {silo.contribution:.3g}. What other silos contributed is not known here.", about)
    order = np.argsort(-part, kind="stable")
    first, last = run.silos[order[0]], run.silos[order[-1]]
    return (
        f"{first.name} is nearest to the consensus (γ = {first.contribution:.3g}, {percent(part[order[0]])} of all), "
        f"{last.name} farthest (γ = {last.contribution:.3g}, {percent(part[order[-1]])}).",
        f"Equal contributions would be {percent(1 / len(run.silos))} each. {about}",
    )


def _trust(run: RunData) -> tuple[str, ...]:
    edges = kept_says(run) if run.result.optimum_degree is not None else _faint(run)
    return (
        *_doubted(run),
        *_certificate(run),
        *stability_says(run),
        *signs_say(run),
        *_noise(run),
        *_unused(run),
        *edges,
    )


def _noise(run: RunData) -> tuple[str, ...]:
    if run.record.privacy is None:
        return ()
    return (
        "What is certified is the optimum for numbers with noise: edges may come of it, weak ones above all. "
        "silograph audit --plan tells how many rows it takes.",
    )


def _unused(run: RunData) -> tuple[str, ...]:
    given = run.parameters.get("pull") is not None
    if given or not run.silos or any(silo.pull != 0 for silo in run.silos):
        return ()
    return (
        "No silo chose to be drawn to the consensus (pull 0): by the rows that each held out, it helps none of them.",
    )


def _publishing(run: RunData) -> tuple[Answer, ...]:
    """Of a run with noise: what its guarantee is for, as a page with exact graphs of silos is soon mailed."""
    if (promise := run.record.privacy) is None:
        return ()
    exact = bool(run.graphs) and not promise.graphs_inside
    page = "So publish the consensus, not this page: it shows graphs and numbers of single silos."
    return (Answer("What may be published?", (promise.says, *([page] if exact else []))),)


def doubts(run: RunData) -> list[str]:
    """What the record doubts of tables and silos."""
    return [text for kind, text in run.warnings.items() if kind not in NOT_ABOUT_DATA]


def _doubted(run: RunData) -> tuple[str, ...]:
    return (
        ("Not before the doubts at the top of this page are settled: they are about the data.",) if doubts(run) else ()
    )


def _certificate(run: RunData) -> tuple[str, ...]:
    result, tolerance = run.result, run.parameters["tol"]
    gap = result.relative_gap
    if result.converged is None:
        method = run.parameters["method"]
        return (f"The method {method} has no certificate: how far its answer is from the optimum is not known.",)
    if gap is None:
        return ("The certified gap is infinite: nothing is known of how far the answer is from the optimum.",)
    verdict = "" if result.converged else f" The tolerance asked for, {scientific(tolerance)}, was not met."
    size = "10⁻¹⁵" if gap < 1e-15 else scientific(gap)
    return (
        f"The computation can be trusted: no other graphs have an objective lower by more than {size} of its size "
        f"(tolerance {scientific(tolerance)})."
        if result.converged
        else f"The computation stopped early: the objective may be lower by {size} of its size.{verdict}",
        "This certifies the optimum of the model, not that every edge is true.",
    )


def _faint(run: RunData) -> tuple[str, ...]:
    weights = np.concatenate([graph.weights for graph in run.graphs.values()] or [run.main.weights])
    if weights.size == 0:
        return ()
    part = float((weights < FAINT_PART * weights.max()).mean())
    if part < 0.25:
        return ()
    why = "Coupling adds weak edges: " if run.result.rho else ""
    return (
        f"{why}{percent(part)} of {'the silos’' if run.silos else 'the'} edges have less than a tenth of the "
        "largest weight. Rank edges by weight rather than count them.",
    )


def _strongest(graph: Graph, count: int, among: np.ndarray | None = None) -> str:
    weights = graph.weights if among is None else np.where(among, graph.weights, 0.0)
    best = np.argsort(-weights, kind="stable")[:count]
    ends = [(graph.names[graph.rows[edge]], graph.names[graph.cols[edge]], weights[edge]) for edge in best]
    return ", ".join(f"{one} – {other} ({weight:.2g})" for one, other, weight in ends)


def counted(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _join_names(names: list[str]) -> str:
    shown = names if len(names) <= MOST_SILOS else [*names[: MOST_SILOS - 1], f"{len(names) - MOST_SILOS + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _keep(names: list[str]) -> str:
    return "keeps its graph to itself" if len(names) == 1 else "keep their graphs to themselves"


def _they(names: list[str]) -> str:
    return "it differs" if len(names) == 1 else "they differ"
