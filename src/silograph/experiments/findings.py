"""The findings page: which of the paper's claims hold, with the numbers, in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from silograph.errors import DataError
from silograph.experiments import claims_algorithm, claims_methods, claims_silos, claims_sums, table4, table5
from silograph.experiments.claims import LEVEL, MARGIN, Claim, markdown
from silograph.experiments.comparison import table_of
from silograph.experiments.evidence import Evidence, gather
from silograph.experiments.files import markdown as table_markdown
from silograph.experiments.outcome import ALL_PRINTED, Outcome, Page, Table, deviations
from silograph.experiments.printed import TABLE_1, TABLE_2, TABLE_3, Rows
from silograph.experiments.session import Session
from silograph.experiments.trials import MEASURES

TABLES = {"I": TABLE_1, "II": TABLE_2, "III": TABLE_3}
TITLE = "Findings: what of the paper holds"
APART = 0.01  # how far a printed F-score may be from the one that its precision and recall imply


def run(session: Session) -> Outcome:
    """Gather the evidence, judge, and write."""
    evidence = gather(session)
    deviation = deviations(_tables(evidence), MEASURES)
    makers = (*claims_methods.MAKERS, *claims_silos.MAKERS, *claims_algorithm.MAKERS, *claims_sums.MAKERS)
    claims = [*(make(evidence) for make in makers), *_real_claims(session)]
    if session.scale.is_quick:
        claims = [
            claim if claim.verdict == "not tested" else replace(claim, verdict="too few draws") for claim in claims
        ]
    blocks = {f"Table {number}, {block}": rows for number, table in TABLES.items() for block, rows in table.items()}
    sections = [
        _opening(session),
        "## The claims\n",
        markdown(claims),
        "## How near our numbers are\n",
        table_markdown(deviation).split("\n", 2)[2],
        _reading(deviation),
        "## Oddities in print\n",
        *(f"* {line}" for line in oddities(blocks)),
        "",
    ]
    return Outcome(tables=(deviation,), pages=(Page(name="findings", title=TITLE, text="\n".join(sections)),))


def _tables(evidence: Evidence) -> list[Table]:
    out = []
    for printed in TABLES.values():
        choices = {label: rows for label, rows in evidence.choices.items() if label in printed}
        out.append(table_of("", "", choices, printed, evidence.recipe))
    return out


def _real_claims(session: Session) -> list[Claim]:
    claims: list[Claim] = []
    for experiment in (table4, table5):
        try:
            claims += experiment.claims(session)
        except DataError as error:
            why = str(error).split("\n", maxsplit=1)[0]
            claims.append(Claim(says=experiment.SAYS, verdict="not tested", evidence=f"The data were not found. {why}"))
    return claims


def _opening(session: Session) -> str:
    scale = session.scale
    size = f"{scale.seeds} seeds per scenario, {scale.draws} draws of COIL-20 objects"
    quick = " **A quick look on few seeds and coarse grids: not for conclusions.**" if scale.is_quick else ""
    return (
        f"Every number here comes from `silograph reproduce findings` ({size}).{quick}\n\n"
        "Methods are compared on the same draws, by held-out scores: each half of the draws at the parameters "
        "that are best on the other half. A difference is *clear* where Wilcoxon's signed-rank test, corrected "
        f"after Holm over the comparisons of a claim, gives p < {LEVEL:g}; two methods are *alike* where the 95 % "
        f"interval of the mean difference is within ±{MARGIN:g}. A clear difference may be too small to matter: "
        "look at its size. A claim *held* where it is clear in every comparison, *in part* where it is in some, "
        "and *in the mean only* where all means point its way and none clearly. Where a claim is no comparison, "
        "its text says when it held.\n\n"
        "The paper's supplement and code are not public. What it leaves open was set as it came closest to the "
        "printed numbers in an earlier attempt over many variants, which is not part of this project ([the "
        "settings](index.md)). That ours are near the printed numbers is therefore no independent evidence, and "
        "comparisons between methods are evidence for these settings; [table-beta](table-beta.md) has others.\n"
    )


def _reading(deviation: Table) -> str:
    number = deviation.number("FS", ALL_PRINTED, "mean absolute difference")
    assert number is not None
    return f"Over all FS cells of Tables I to III, ours differ from the paper's by {number.ours:.3f} on average.\n"


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
                fitting = f_score * recall / (2 * recall - f_score)
                lines.append(
                    f"{place}: precision {precision:.3f} and recall {recall:.3f} imply FS {implied:.3f}; printed is "
                    f"{f_score:.3f}, which a precision of {fitting:.3f} would fit."
                )
            if (recall, error) in seen:
                lines.append(f"{place}: recall {recall:.3f} and RE {error:.3f} are those of {seen[recall, error]}.")
            seen[recall, error] = place
    return lines
