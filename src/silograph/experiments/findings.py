"""The findings page: which of the paper's claims hold, with the numbers, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from silograph.errors import DataError
from silograph.experiments import table4, table5
from silograph.experiments.claims import Claim, markdown
from silograph.experiments.claims_synthetic import EVEN, Evidence, all_claims
from silograph.experiments.comparison import ABLATION_ROWS, MAIN_ROWS, table_of
from silograph.experiments.figure_convergence import descents
from silograph.experiments.files import markdown as table_markdown
from silograph.experiments.outcome import ALL_PRINTED, Outcome, Page, Table, deviations
from silograph.experiments.printed import TABLE_1, TABLE_2, TABLE_3, Rows
from silograph.experiments.scenarios import NESTED, UNEQUAL
from silograph.experiments.selection import choose
from silograph.experiments.session import Session

TITLE = "Findings: what of the paper holds"
APART = 0.01  # how far a printed F-score may be from the one that its precision and recall imply


def run(session: Session) -> Outcome:
    """Gather the evidence, judge, and write."""
    evidence = _evidence(session)
    tables = _tables(evidence)
    deviation = deviations(tables, "FS")
    claims = [*all_claims(evidence), *_real_claims(session)]
    text = "\n".join(
        [
            _opening(session),
            "## The claims\n",
            markdown(claims),
            "## How near our numbers are\n",
            table_markdown(deviation).split("\n", 2)[2],
            _reading(deviation),
            "## Oddities in print\n",
            *(f"* {line}" for line in oddities({**_prefixed("Table I", TABLE_1), **_prefixed("Table II", TABLE_2),
                                                **_prefixed("Table III", TABLE_3)})),
            "",
        ]
    )  # fmt: skip
    return Outcome(tables=(deviation,), pages=(Page(name="findings", title=TITLE, text=text),))


def _evidence(session: Session) -> Evidence:
    scenarios = (*EVEN, UNEQUAL, NESTED)
    trials = dict(zip((s.label for s in scenarios), session.trials(*scenarios), strict=True))
    rows = {scenario.label: MAIN_ROWS for scenario in EVEN} | {s.label: ABLATION_ROWS for s in (UNEQUAL, NESTED)}
    choices = {
        s.label: {row.label: choose(row, s, trials[s.label], session.recipe) for row in rows[s.label]}
        for s in scenarios
    }
    _, followed = descents(session)
    return Evidence(recipe=session.recipe, choices=choices, trials=trials, descents=followed)


def _tables(evidence: Evidence) -> list[Table]:
    return [
        table_of("", "", {label: rows for label, rows in evidence.choices.items() if label in printed}, printed,
                 evidence.recipe)
        for printed in (TABLE_1, TABLE_2, TABLE_3)
    ]  # fmt: skip


def _real_claims(session: Session) -> list[Claim]:
    claims = []
    for experiment in (table4, table5):
        try:
            claims.append(experiment.claim(session))
        except DataError as error:
            why = str(error).split(". ", maxsplit=1)[0]
            claims.append(
                Claim(says=experiment.SAYS, verdict="not tested", evidence=f"The data were not found: {why}.")
            )
    return claims


def _opening(session: Session) -> str:
    scale = session.scale
    size = f"{scale.seeds} seeds per scenario, {scale.draws} draws of COIL-20 objects"
    quick = " **A quick look on few seeds and coarse grids: not for conclusions.**" if scale.is_quick else ""
    return (
        f"Every number here comes from `silograph reproduce findings` ({size}).{quick} Methods are compared on the "
        "same "
        "draws by Wilcoxon's signed-rank test, corrected after Holm over the comparisons of a claim; a difference "
        "counts "
        "where p < 0.05. The verdicts follow from the numbers by rule, not by judgement.\n"
    )


def _reading(deviation: Table) -> str:
    number = deviation.number("FS", ALL_PRINTED, "mean absolute difference")
    assert number is not None
    return (
        f"Over all FS cells of Tables I to III, ours differ from the paper's by {number.ours:.3f} on average. The "
        "paper's supplement and code are not public; what it leaves open is listed in "
        "[the index](index.md), chosen by reason and kept for all cells.\n"
    )


def _prefixed(table: str, blocks: Mapping[str, Rows]) -> dict[str, Rows]:
    return {f"{table}, {block}": rows for block, rows in blocks.items()}


def oddities(blocks: Mapping[str, Rows]) -> Sequence[str]:
    """Printed numbers that do not fit each other.

    The F-score of means is not the mean of F-scores, but with a few percent of spread they differ by less than 0.01.
    """
    lines = []
    seen: dict[tuple[float, float], str] = {}
    for block, rows in blocks.items():
        for row, (precision, recall, f_score, error) in rows.items():
            place = f"{block}, {row}"
            implied = 2 * precision * recall / (precision + recall)
            if abs(implied - f_score) > APART:
                lines.append(
                    f"{place}: precision {precision:.3f} and recall {recall:.3f} imply FS {implied:.3f}; "
                    f"printed is {f_score:.3f}."
                )
            if (recall, error) in seen:
                lines.append(f"{place}: recall {recall:.3f} and RE {error:.3f} are those of {seen[recall, error]}.")
            seen[recall, error] = place
    return lines
