"""Table I: five silos that share half of their edges, with 20, 50 or 100 samples each."""

from silograph.experiments.comparison import MAIN_ROWS, choose_points, table_of
from silograph.experiments.outcome import Outcome
from silograph.experiments.printed import TABLE_1
from silograph.experiments.scenarios import SIZES
from silograph.experiments.session import Session

TITLE = "Table I: varying data sizes"


def run(session: Session) -> Outcome:
    """Learn, choose, compare."""
    choices = choose_points(session, SIZES, MAIN_ROWS)
    return Outcome(tables=(table_of("table1", TITLE, choices, TABLE_1, session.recipe),))
