"""A table of methods against measures, for several scenarios, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from silograph.experiments.outcome import ALL_EXACT, ALL_PRINTED, EXACT, Number, Table, deviations, mean_and_error
from silograph.experiments.printed import Rows
from silograph.experiments.recipe import Point, Recipe
from silograph.experiments.scenarios import Scenario
from silograph.experiments.selection import CONSENSUS, LOCAL, Chosen, Row, choose
from silograph.experiments.session import Session
from silograph.experiments.trials import MEASURES

HELD_OUT = "FS held out"
MAIN_ROWS = (
    Row(label="IGL", method="igl"),
    Row(label="IGL, own β", method="igl-own"),
    Row(label="FedAvg", method="fedavg"),
    Row(label="FedProx", method="fedprox"),
    Row(label="MRMTL", method="mrmtl"),
    Row(label="Ditto", method="ditto"),
    Row(label="PPGL-L", method="ppgl"),
    Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS),
    Row(label="PPGL-L, exact", method="exact"),
    Row(label="PPGL-C, exact", method="exact", graphs=CONSENSUS),
)
# Those with a graph per silo, as figures show them
DRAWN_ROWS = tuple(row for row in MAIN_ROWS if row.graphs == LOCAL and row.method != "igl-own")
ABLATION_ROWS = (
    Row(label="PPGL-L", method="ppgl"),
    Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS),
    Row(label="PPGL-L, equal weights", method="ppgl-equal"),
    Row(label="PPGL-C, equal weights", method="ppgl-equal", graphs=CONSENSUS),
    Row(label="PPGL-L, exact", method="exact"),
    Row(label="PPGL-C, exact", method="exact", graphs=CONSENSUS),
    Row(label="PPGL-L, equal weights, exact", method="exact-equal"),
    Row(label="PPGL-C, equal weights, exact", method="exact-equal", graphs=CONSENSUS),
)

Choices = dict[str, dict[str, Chosen]]  # scenario, row → what was chosen


def chosen_in(session: Session, scenarios: Sequence[Scenario], rows: Sequence[Row]) -> Choices:
    """Run the scenarios and choose each row's point."""
    results = session.trials(*scenarios)
    return {
        scenario.label: {row.label: choose(row, scenario, trials, session.recipe) for row in rows}
        for scenario, trials in zip(scenarios, results, strict=True)
    }


def table_of(name: str, title: str, choices: Choices, printed: Mapping[str, Rows], recipe: Recipe) -> Table:
    """The choices' scores, beside the printed ones; an exact row stands beside its iterated one."""
    numbers: list[Number] = []
    for label, rows in choices.items():
        for row, chosen in rows.items():
            paper = printed.get(label, {}).get(row.removesuffix(EXACT))
            numbers += _row(label, row, chosen, paper)
    n_seeds = next(iter(next(iter(choices.values())).values())).scores.shape[0]
    table = Table(
        name=name,
        title=title,
        numbers=tuple(numbers),
        notes=_notes(choices, n_seeds, recipe),
        main=("FS", HELD_OUT),
    )
    return replace(table, notes=(*table.notes, _distance(table)))


def _distance(table: Table) -> str:
    apart = deviations([table], "FS")
    printed, exact = (apart.number("FS", row, "mean absolute difference") for row in (ALL_PRINTED, ALL_EXACT))
    assert printed is not None
    assert exact is not None
    return f"FS differs from the paper's by {printed.ours:.3f} on average (the exact rows: {exact.ours:.3f})."


def _row(block: str, row: str, chosen: Chosen, paper: tuple[float, ...] | None) -> list[Number]:
    columns = dict(zip(MEASURES, chosen.scores.T, strict=True)) | {HELD_OUT: chosen.held_out}
    printed = dict(zip(MEASURES, paper, strict=True)) if paper else {}
    out = []
    for column, values in columns.items():
        ours, error = mean_and_error(values)
        out.append(Number(block=block, row=row, column=column, ours=ours, error=error, paper=printed.get(column)))
    return out


def _notes(choices: Choices, n_seeds: int, recipe: Recipe) -> tuple[str, ...]:
    tuned = [
        f"{block}: " + "; ".join(f"{row} {said(chosen.point)}" for row, chosen in rows.items() if chosen.point)
        for block, rows in choices.items()
    ]
    return (
        f"Means over {n_seeds} seeds ± standard error. Each row has its own best point of its grid by mean FS; "
        "“held out” is the FS of each half of the seeds at the point chosen on the other half.",
        f"“Exact” is the optimum of the same model (certified to 1e-6) instead of T = {recipe.rounds} rounds.",
        "Chosen: " + ". ".join(tuned) + ".",
        "At an edge of its grid: " + (". ".join(_at_edges(choices, recipe)) or "none") + ".",
    )


def _at_edges(choices: Choices, recipe: Recipe) -> list[str]:
    """Where a wider grid might have served a row better."""
    grids = recipe.grids
    ends = {"beta": grids.betas, "strength": grids.strengths, "nu": grids.nus, "lam": grids.lams}
    out = []
    for block, rows in choices.items():
        found = {
            row: {name: value for name, value in chosen.point.items() if value in (ends[name][0], ends[name][-1])}
            for row, chosen in rows.items()
        }
        if any(found.values()):
            out.append(f"{block}: " + "; ".join(f"{row} {said(point)}" for row, point in found.items() if point))
    return out


def said(point: Point) -> str:
    """A point of a grid in the paper's letters."""
    letters = {"beta": "β", "strength": "μ", "nu": "ν", "lam": "λ"}
    return " ".join(f"{letters[name]}={value:g}" for name, value in point.items())
