"""Table V: graphs of autistic people and controls (ABIDE), and whether the groups differ at all.

The paper has 34 regions of the AAL atlas and 50 subjects of each group, and does not say which; numbers of edges are
therefore compared in sign, not in size.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from silograph._util.types import Vector
from silograph.datasets.abide import load_abide
from silograph.datasets.locate import ABIDE, fingerprint, locate
from silograph.experiments.brains import BrainStudy, differences, edges_and_weights, learn_brains
from silograph.experiments.claims import LEVEL, Claim, format_p, verdict_of
from silograph.experiments.lab import Arrays
from silograph.experiments.outcome import Number, Outcome, Table, mean_and_error
from silograph.experiments.printed import TABLE_5
from silograph.experiments.session import Session

TITLE = "Table V: brain graphs of two groups (ABIDE)"
SAYS = "Autistic subjects' graphs have fewer edges and smaller weights (Table V)"
MEASURES = ("edges", "mean weight")
NU, LAM = 10.0, 0.1  # the middle of the grids, on a logarithmic scale
HALF, SOME = 0.5, 0.01  # shares of edges that count as many, and as some
PAPER_PAIRS = 34 * 33 / 2
OTHERS = ((2.0, 0.1), (50.0, 0.1), (10.0, 0.01), (10.0, 1.0))  # do the conclusions depend on the choice?


def run(session: Session) -> Outcome:
    """Learn once by Algorithm 1 and once exactly; compare the groups."""
    numbers: list[Number] = []
    for label, method in (("Algorithm 1", "ppgl"), ("Exact", "exact")):
        (result,) = studies(session, [(NU, LAM)], method)
        numbers += _group_numbers(session, label, result)
    table = Table(name="table5", title=TITLE, numbers=tuple(numbers), notes=_notes(session, result))
    return Outcome(tables=(table, sensitivity(session)))


def _group_numbers(session: Session, block: str, result: Arrays) -> list[Number]:
    first, n_pairs = result["is_autistic"], result["weights"].shape[1]
    edges, weight = edges_and_weights(result["weights"], session.recipe.threshold)
    columns: tuple[
        tuple[str, Vector, dict[str, float]], ...
    ] = (  # edges of another atlas are another number: only their share of all pairs can be compared
        ("edges", edges, {}),
        ("density", edges / n_pairs, {group: printed[0] / PAPER_PAIRS for group, printed in TABLE_5.items()}),
        ("mean weight", weight, {group: printed[1] for group, printed in TABLE_5.items()}),
    )
    out = []
    for column, values, paper in columns:
        for group, members in (("Autism", first), ("Control", ~first)):
            ours, error = mean_and_error(values[members])
            out.append(Number(block=block, row=group, column=column, ours=ours, error=error, paper=paper.get(group)))
        p = _p(session, values, first)
        out.append(Number(block=block, row="p of the difference", column=column, ours=p))
    return out


def _p(session: Session, values: Vector, is_first: np.ndarray) -> float:
    found = differences(values[:, None], is_first, session.scale.permutations)
    return float(np.nan_to_num(found.p[0], nan=1.0))  # the same in all subjects: not tested


def _notes(session: Session, result: Arrays) -> tuple[str, ...]:
    first = result["is_autistic"]
    n_pairs = result["weights"].shape[1]
    n_regions = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    autism, control = (f"{TABLE_5[group][0]:g}" for group in ("Autism", "Control"))
    return (
        f"{int(first.sum())} autistic subjects and {int((~first).sum())} controls, each a silo, {n_regions} regions, "
        f"series standardised; α, β, ζ as in Table I, ν = {NU:g}, λ = {LAM:g}. The paper has 34 regions of another "
        f"atlas: of its {autism} and {control} edges, only the share of all pairs (density) can be compared.",
        f"p: of Welch's t, two-sided, by {session.scale.permutations} relabellings, as `silograph compare` has it. The "
        "groups are not used in learning: relabelling subjects changes no graph, only who is counted where.",
    )


def sensitivity(session: Session) -> Table:
    """The same differences at other ν and λ."""
    numbers: list[Number] = []
    points = [(NU, LAM), *OTHERS]
    for (nu, lam), result in zip(points, studies(session, points, "exact"), strict=True):
        numbers += _differences(
            session,
            result,
            block="All subjects" if session.scale.subjects is None else "Some subjects",
            row=f"ν = {nu:g}, λ = {lam:g}",
        )
    for seed, result in enumerate(subsets(session)):
        numbers += _differences(session, result, block="Random subjects", row=f"draw {seed + 1}")
    return Table(
        name="table5-sensitivity",
        title="Table V at other parameters, and on other subjects (exact)",
        numbers=tuple(numbers),
        notes=(
            f"Random subjects: {session.scale.subset} of each group (the paper has 50) at ν = {NU:g}, λ = {LAM:g}. "
            "The sign of a difference that turns with the draw says nothing of the groups.",
        ),
        digits=4,
    )


def _differences(session: Session, result: Arrays, *, block: str, row: str) -> list[Number]:
    first, out = result["is_autistic"], []
    for measure, values in zip(MEASURES, edges_and_weights(result["weights"], session.recipe.threshold), strict=True):
        apart = float(values[first].mean() - values[~first].mean())
        p = _p(session, values, first)
        for column, ours in ((f"{measure}: autism − control", apart), (f"p, {measure}", p)):
            out.append(Number(block=block, row=row, column=column, ours=ours))
    return out


def claims(session: Session) -> list[Claim]:
    """Both differences with their signs and p-values; and whether any edge differs."""
    (result,) = studies(session, [(NU, LAM)], "exact")
    first, parts, words = result["is_autistic"], [], []
    for measure, values in zip(MEASURES, edges_and_weights(result["weights"], session.recipe.threshold), strict=True):
        autism, control = float(values[first].mean()), float(values[~first].mean())
        p = _p(session, values, first)
        parts.append(autism < control and p < LEVEL)
        form = ".0f" if measure == "edges" else ".4f"
        words.append(f"{measure} {autism:{form}} (autism) against {control:{form}} (control), p {format_p(p)}")
    fewer = (
        f"Not a test of the paper's own subjects: ours are of one site, in another atlas. At ν = {NU:g}, λ = {LAM:g} "
        f"(exact): {'; '.join(words)}. Other parameters and subjects: [table5-sensitivity](table5-sensitivity.md)."
    )
    return [
        Claim(says=SAYS, verdict=verdict_of(parts), evidence=fewer),
        _shared_edges(session, result),
        _changed_edges(session, result),
    ]


def _shared_edges(session: Session, result: Arrays) -> Claim:
    shared, found = result["consensus"] > session.recipe.threshold, result["weights"] > session.recipe.threshold
    inside = (found & shared).sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    first = result["is_autistic"]
    text = (
        f"Of a subject's edges, {inside[first].mean():.0%} (autism) and {inside[~first].mean():.0%} (control) are "
        "edges of the consensus, on average; held if more than half. The share depends on ν and λ."
    )
    says = "Graphs of both groups share many edges, which the consensus graph has"
    return Claim(says=says, verdict=verdict_of([float(inside.mean()) > HALF]), evidence=text)


def _changed_edges(session: Session, result: Arrays) -> Claim:
    n_permutations, n_pairs = session.scale.edge_permutations, result["weights"].shape[1]
    found = differences(result["weights"], result["is_autistic"], n_permutations).p_family
    count, p = int((found <= LEVEL).sum()), float(np.nanmin(found, initial=1.0))
    text = (
        f"{count} of {n_pairs} edges differ between the groups when all are tested at once (largest of Welch's t "
        f"against its distribution under {n_permutations} relabellings, 5 % for any false one); the "
        f"p-value of the largest is {format_p(p)}. Held if {SOME:.0%} of them do, in part if any does."
    )
    says = "Some edges differ noticeably between autistic subjects and controls"
    return Claim(says=says, verdict=verdict_of([count >= SOME * n_pairs, count > 0]), evidence=text)


def studies(session: Session, points: Sequence[tuple[float, float]], method: str) -> list[Arrays]:
    """One study of all subjects per point."""
    return _learn_all(session, [replace(study_of(session), method=method, nu=nu, lam=lam) for nu, lam in points])


def subsets(session: Session) -> list[Arrays]:
    """Studies of random subjects, as many of each group as the paper has."""
    first = replace(study_of(session), subjects=session.scale.subset)
    return _learn_all(session, [replace(first, seed=seed) for seed in range(session.scale.subsets)])


def _learn_all(session: Session, jobs: Sequence[BrainStudy]) -> list[Arrays]:
    load_abide(jobs[0].path)  # complains at once, not from within a worker
    return session.lab.results("ABIDE", learn_brains, jobs)


def study_of(session: Session) -> BrainStudy:
    """The study of all subjects, exact, at the parameters chosen."""
    path = locate(ABIDE, session.abide).resolve()
    return BrainStudy(
        method="exact",
        nu=NU,
        lam=LAM,
        recipe=session.recipe,
        path=path,
        data=fingerprint(path),
        subjects=session.scale.subjects,
    )
