"""Table II: five silos with 50 samples each that share 30 %, 60 % or 90 % of their edges."""

from silograph.experiments.comparison import MAIN_ROWS, choose_points, table_of
from silograph.experiments.outcome import Outcome
from silograph.experiments.printed import TABLE_2
from silograph.experiments.scenarios import SHARES
from silograph.experiments.session import Session

TITLE = "Table II: varying data heterogeneity"


def run(session: Session) -> Outcome:
    """Learn, choose, compare."""
    choices = choose_points(session, SHARES, MAIN_ROWS)
    return Outcome(tables=(table_of("table2", TITLE, choices, TABLE_2, session.recipe),))
