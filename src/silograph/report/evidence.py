"""What the page says beyond the optimum: how stable edges are, how the coupling was chosen, which edges were kept."""

from typing import Any

import numpy as np

from silograph.analysis.choosing import USUAL
from silograph.graph.graph import Graph
from silograph.runs.reader import RunData

DIGITS = 3  # of bounds, which are shown with two
HALVES_OF = {"rows": "half of every silo's rows", "silos": "half of the silos"}


def stability_of(run: RunData) -> dict[str, Any] | None:
    """What the page's slider needs: where it starts, and how many edges may be false at each per cent."""
    told = run.record.stability
    if told is None or run.stability is None or not run.stability.knows(None):
        return None
    basis = run.stability.false_edges(None)
    bounds = [None if percent == 0 else float(f"{basis.bound(percent / 100):.{DIGITS}g}") for percent in range(101)]
    return {"halves": told.half_samples, "of": halves_of(run), "percent": stable_from(run), "bounds": bounds}


def stable_from(run: RunData) -> int | None:
    """The per cent of half-samples that make an edge stable, known also where only silos' own graphs were halved."""
    return None if run.record.stability is None else round(100 * run.record.stability.threshold)


def edge_columns(run: RunData, silo: str | None, graph: Graph) -> dict[str, np.ndarray]:
    """The columns that the run's own table of edges has beyond the weight; none where nothing is told."""
    signs = {} if run.signs is None else run.signs.columns(silo, graph)
    told = run.stability
    if told is None or not told.knows(silo):
        return signs
    return {**signs, **told.columns(silo, graph)}


def agreed_edges(run: RunData, silo: str | None, graph: Graph) -> np.ndarray | None:
    """Of which edges partial correlations say the same; None where there are none."""
    return None if run.signs is None else run.signs.agreed(silo, graph)


def signs_say(run: RunData) -> tuple[str, ...]:
    """The second opinion: edges on which both agree, whether the smooth model is wrong, and strong negative pairs."""
    if run.signs is None:
        return ()
    agreed, whose = int(run.signs.agreed(None, run.main).sum()), "edges of the consensus" if run.silos else "edges"
    both = (
        f"{agreed} of {run.main.n_edges} {whose} are also among as many of the highest partial correlations "
        "(✓ in the table of edges)."
    )
    told = run.record.signs
    if told is None:
        return (both,)
    pairs = ", ".join(f"{pair.source} – {pair.target} ({pair.value:.2f})" for pair in told.negative)
    return (
        both,
        told.says,
        *((f"The strongest negative pairs, which no graph here can show: {pairs}.",) if pairs else ()),
    )


def stability_says(run: RunData) -> tuple[str, ...]:
    """How many edges are stable, and how many of them may be false."""
    told = run.record.stability
    if told is None:
        return ()
    if told.stable_edges is None:  # at a site, which has its own rows only
        own = sum(silo.stable_edges or 0 for silo in run.silos)
        every = sum(silo.edges or 0 for silo in run.silos if silo.stable_edges is not None)
        return (
            f"{own} of {every} edges of the silos' graphs were found in {told.threshold:.0%} of half-samples.",
            told.says,
        )
    whose = "edges of the consensus" if run.silos else "edges"
    counts = f"{told.stable_edges} of {told.edges} {whose} were found in at least {told.threshold:.0%} of half-samples"
    quorum = (
        (f"{told.quorum_edges} edges are that stable in at least {told.quorum} silos (quorum/ in the run's folder).",)
        if told.quorum is not None
        else ()
    )
    return (f"{counts} ({told.half_samples}, each with {halves_of(run)}).", told.says, *quorum)


def halves_of(run: RunData) -> str:
    """What a half-sample of the consensus, or of the only graph, has."""
    assert run.record.stability is not None
    return HALVES_OF[run.record.stability.of] if run.silos else "half of the rows"


def kept_says(run: RunData) -> tuple[str, ...]:
    """Which of the optimum's edges the graphs have, where they do not have all."""
    whole, kept = run.result.optimum_degree, run.result.mean_degree
    if whole is None or kept is None or whole <= kept + 0.05:
        return ()
    return (
        f"The graphs keep the strongest edges of the optimum, so that each node has {_one_digit(kept)} neighbours on "
        f"average; the whole optimum has {_one_digit(whole)}.",
    )


def coupling_of(run: RunData) -> dict[str, Any] | None:
    """The couplings tried, their loss, and what was made of it; nothing where the coupling was given."""
    curve, chosen = run.result.coupling_curve, run.result.coupling
    if not curve or chosen is None:
        return None
    least = min(curve, key=lambda tried: tried.loss).coupling
    return {
        "tried": [tried.coupling for tried in curve],
        "losses": [tried.loss for tried in curve],
        "chosen": chosen,
        "least": least,
        "says": _coupling_says(chosen, least),
    }


def _coupling_says(chosen: float, least: float) -> str:
    about = "At 0 each silo is learned alone; around 1 all fuse."
    best = f"at {least:g}" if least > 0 else "where silos are alone"
    return (
        f"The coupling is {chosen:.2g}. The least loss on rows that were held out is {best}; as the loss alone is a "
        f"noisy guide, half way to {USUAL:g}, a usual one, was taken (on a logarithmic scale). {about}"
    )


def _one_digit(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
