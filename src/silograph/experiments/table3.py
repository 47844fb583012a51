"""Table III: what the adaptive weights are good for, with unequal data sizes (1) and unequal heterogeneity (2)."""

from silograph.experiments.comparison import ABLATION_ROWS, choose_points, table_of
from silograph.experiments.outcome import Outcome
from silograph.experiments.printed import TABLE_3
from silograph.experiments.scenarios import NESTED, UNEQUAL
from silograph.experiments.session import Session

TITLE = "Table III: without the adaptive weights"


def run(session: Session) -> Outcome:
    """Learn, choose, compare."""
    choices = choose_points(session, (UNEQUAL, NESTED), ABLATION_ROWS)
    return Outcome(tables=(table_of("table3", TITLE, choices, TABLE_3, session.recipe),))
