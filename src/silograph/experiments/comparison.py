"""A table of methods against measures, for several scenarios, beside the paper's numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from silograph.experiments.outcome import ALL_EXACT, ALL_PRINTED, EXACT, Number, Table, deviations, mean_and_error
from silograph.experiments.printed import Rows
from silograph.experiments.recipe import Point, Recipe
from silograph.experiments.scenarios import Scenario
from silograph.experiments.selection import CONSENSUS, LOCAL, Chosen, Row, choose
from silograph.experiments.session import Session
from silograph.experiments.trials import CERTIFIED, MEASURES

HELD_OUT = "FS held out"
MAIN_COLUMNS = ("FS", HELD_OUT, "AP")  # what matters most
RE = MEASURES.index("RE")
IN_PRINT = MEASURES[:4]
ASTRAY = 1.5  # times the median relative error
PAPER_ROWS = (
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
ONE_SUM_ROWS = (
    Row(label="One sum, L", method="sum"),
    Row(label="One sum, C", method="sum-1", graphs=CONSENSUS),
    Row(label="One sum, L, chosen at home", method="sum-home"),
    Row(label="One sum, C, not tuned", method="sum-home", graphs=CONSENSUS),
)
MAIN_ROWS = (*PAPER_ROWS, *ONE_SUM_ROWS)
# Those with a graph per silo, as figures show them
DRAWN_ROWS = tuple(row for row in PAPER_ROWS if row.graphs == LOCAL and row.method != "igl-own")
ABLATION_ROWS = (
    Row(label="PPGL-L", method="ppgl"),
    Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS),
    Row(label="PPGL-L, equal weights", method="ppgl-equal"),
    Row(label="PPGL-C, equal weights", method="ppgl-equal", graphs=CONSENSUS),
    Row(label="PPGL-L, exact", method="exact"),
    Row(label="PPGL-C, exact", method="exact", graphs=CONSENSUS),
    Row(label="PPGL-L, equal weights, exact", method="exact-equal"),
    Row(label="PPGL-C, equal weights, exact", method="exact-equal", graphs=CONSENSUS),
    *ONE_SUM_ROWS,
)

Choices = dict[str, dict[str, Chosen]]  # scenario, row → what was chosen


def choose_points(session: Session, scenarios: Sequence[Scenario], rows: Sequence[Row]) -> Choices:
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
        name=name, title=title, numbers=tuple(numbers), notes=_notes(choices, n_seeds, recipe), main=MAIN_COLUMNS
    )
    return replace(table, notes=(*table.notes, *_distance(table)))


def _distance(table: Table) -> list[str]:
    apart = deviations([table], ["FS"])
    printed, exact = (apart.number("FS", row, "mean absolute difference") for row in (ALL_PRINTED, ALL_EXACT))
    beside = "" if exact is None else f" (the exact rows: {exact.ours:.3f})"
    return [] if printed is None else [f"FS differs from the paper's by {printed.ours:.3f} on average{beside}."]


def _row(block: str, row: str, chosen: Chosen, paper: tuple[float, ...] | None) -> list[Number]:
    measured = dict(zip(MEASURES, chosen.scores.T, strict=True))
    columns = {"FS": measured["FS"], HELD_OUT: chosen.held_out, "AP": measured["AP"]} | measured
    printed = dict(zip(IN_PRINT, paper, strict=True)) if paper else {}
    out = []
    for column, values in columns.items():
        ours, error = mean_and_error(values)
        out.append(Number(block=block, row=row, column=column, ours=ours, error=error, paper=printed.get(column)))
    return out


def _notes(choices: Choices, n_seeds: int, recipe: Recipe) -> tuple[str, ...]:
    tuned = [
        f"{block}: " + "; ".join(f"{row} {format_point(chosen.point)}" for row, chosen in rows.items() if chosen.point)
        for block, rows in choices.items()
    ]
    return (
        f"Means over {n_seeds} seeds ± standard error. Each row has its own best point of its grid by mean FS; "
        "“held out” is the FS of each half of the seeds at the point chosen on the other half. AP is the average "
        "precision of pairs ranked by weight, at the same point; the paper has none.",
        f"“Exact” is the optimum of the same model (certified to {CERTIFIED:g}) instead of T = {recipe.rounds} rounds.",
        "“One sum”, certified alike: the consensus is the pooled graph, from one sum of all silos' costs, and each "
        "silo draws its own graph towards it (Ditto's form). “Chosen at home”: each silo chose its pull by rows that "
        "it held out, without sparsity, and nobody used the truth.",
        "Chosen: " + ". ".join(tuned) + ".",
        *_astray(choices),
        "At an edge of its grid: " + (". ".join(_at_edges(choices)) or "none") + ".",
    )


def _astray(choices: Choices) -> list[str]:
    """Where the mean relative error is that of a few draws in which the iteration's step was too long."""
    out = []
    for block, rows in choices.items():
        for row, chosen in rows.items():
            errors = chosen.scores[:, RE]
            median = float(np.median(errors))
            wild = int((errors > ASTRAY * median).sum())
            if wild:
                out.append(
                    f"{block}, {row}: in {wild} of {errors.size} draws weights went astray (median RE {median:.3f})"
                )
    return [f"Steps too long: {'; '.join(out)}."] if out else []


def _at_edges(choices: Choices) -> list[str]:
    out = []
    for block, rows in choices.items():
        found = [f"{row} {format_point(chosen.at_edge)}" for row, chosen in rows.items() if chosen.at_edge]
        if found:
            out.append(f"{block}: " + "; ".join(found))
    return out


def format_point(point: Point) -> str:
    """A point of a grid in the paper's letters."""
    letters = {"beta": "β", "strength": "μ", "nu": "ν", "lam": "λ", "sparsity": "sparsity"}
    return " ".join(f"{letters[name]}={value:g}" for name, value in point.items())
