"""The first page of a folder of results: what is there, and how it was made."""

from collections.abc import Sequence

from silograph.experiments.catalogue import Experiment
from silograph.experiments.session import Session

CHOICES = {
    "graph": "20 points in the unit square, kernel width 0.5, weights below 0.7 cut; a random part q of the edges is "
    "shared",
    "edges added per silo": "as many as were removed, uniform over the pairs that are not shared; their weights are a "
    "permutation of the removed ones",
    "scale": "trace(L) = number of nodes, before signals are drawn; the shared graph scaled alike",
    "signals": "N(0, L† + 0.01·I); distances divided by N",
    "case 2 of Table III": "the edges kept are nested, q = 1, 0.8, 0.6, 0.4, 0.2; the shared graph is silo C1's",
    "scored against": "PPGL-C: the shared graph; all others: each silo's own graph, then averaged over silos",
    "baselines": "silos weigh 1/I each; FedAvg and FedProx restart momentum each round; MRMTL: (μ/2)‖w_i − mean‖²; "
    "Ditto: FedAvg and (μ/2)‖w_i − w_global‖²",
    "unrelated silos": "the last of five silos, with the graph and signals of other draws; the shared graph is the "
    "others'",
    "tuning": "each row by its own best mean FS over all seeds; a held-out choice beside it",
}


def index_page(session: Session, experiments: Sequence[Experiment]) -> str:
    """Links to all that was made, and the settings."""
    recipe, grids, scale = session.recipe, session.recipe.grids, session.scale
    settings = {
        "model": f"α = {recipe.alpha:g}, β = {recipe.beta:g}, ζ = {recipe.zeta:g}; FedAvg and FedProx choose β from "
        f"{_as_set(grids.betas)}, “IGL, own β” from {_as_set(grids.own_betas)}. The paper takes IGL's best β for "
        "all: see [table-beta](table-beta.md)",
        "algorithm": f"w⁰ = {recipe.first_weight:g}, ε_γ = {recipe.gamma_epsilon:g}, η = {recipe.step:g}, "
        f"ξ = {recipe.momentum:g}, T = {recipe.rounds}, K = {recipe.local_steps}; IGL "
        f"{recipe.rounds * recipe.local_steps} steps",
        "an edge": f"a weight above {recipe.threshold:g}; relative error of weights as they are",
        "grid of ν": _as_set(grids.nus),
        "grid of λ": _as_set(grids.lams),
        "grid of ν for equal weights": _as_set(grids.equal_nus),
        "grid of μ": _as_set(grids.strengths),
        "grid of sparsity of one sum": _as_set(grids.sparsities),
    }
    quick = "\n**A quick look: few draws, coarse grids. Not for conclusions.**\n" if scale.is_quick else ""
    lines = [
        "# The paper, reproduced",
        "",
        "*Graph Learning Across Data Silos*: every table and figure, computed anew by `silograph reproduce all` and "
        "set beside the printed numbers. What held and what did not is on the page of [findings](findings.md).",
        quick,
        "| | |",
        "|---|---|",
        *(f"| [{experiment.name}]({experiment.name}.md) | {experiment.shows} |" for experiment in experiments),
        "",
        "Beside them: [how far our numbers are from the paper's](deviations.md), [Table V at other parameters and on "
        "other subjects](table5-sensitivity.md).",
        "",
        "## How it was made",
        "",
        f"{scale.seeds} draws of each synthetic scenario. The paper states some settings, and ranges for ν and λ; "
        "its supplement and code are not public. The other settings are those with which an earlier attempt over "
        "many variants, not part of this project, came closest to the printed numbers; they are the same for all "
        "tables.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {choice} |" for name, choice in (CHOICES | settings).items()),
        "",
        "Numbers do not depend on how many processes computed them. On another processor the last digits may differ, "
        "and with them Algorithm 1 where it leaps. `run.json` has versions, sizes, and what took how long.",
        "",
    ]
    return "\n".join(lines)


def _as_set(values: Sequence[float]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"
