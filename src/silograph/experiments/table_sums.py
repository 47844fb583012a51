"""How many sums the consensus takes: one, two or three, against the joint optimum; also where silos are unrelated.

With unrelated silos, personal graphs too: those of Tables I to III are there.
"""

from silograph.experiments.comparison import ONE_SUM_ROWS, Choices, choose_points, table_of
from silograph.experiments.outcome import Outcome
from silograph.experiments.scenarios import NESTED, SHARES, SIZES, UNEQUAL, UNRELATED
from silograph.experiments.selection import CONSENSUS, LOCAL, Row
from silograph.experiments.session import Session

TITLE = "One, two and three sums"
CONSENSUS_ROWS = (
    Row(label="PPGL-C, exact", method="exact", graphs=CONSENSUS),
    Row(label="One sum, C", method="sum-1", graphs=CONSENSUS),
    Row(label="Two sums, C", method="sum-2", graphs=CONSENSUS),
    Row(label="Three sums, C", method="sum-3", graphs=CONSENSUS),
)
PERSONAL_ROWS = (Row(label="PPGL-L, exact", method="exact"), *(row for row in ONE_SUM_ROWS if row.graphs == LOCAL))


def run(session: Session) -> Outcome:
    """Learn, choose, compare."""
    table = table_of("table-sums", TITLE, choices_of(session), {}, session.recipe)
    return Outcome(tables=(table,))


def choices_of(session: Session) -> Choices:
    """The choices of all scenarios."""
    published = choose_points(session, (*SIZES, *SHARES, UNEQUAL, NESTED), CONSENSUS_ROWS)
    return published | choose_points(session, UNRELATED, (*CONSENSUS_ROWS, *PERSONAL_ROWS))
