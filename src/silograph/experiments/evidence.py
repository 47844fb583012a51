"""What the synthetic experiments gave, gathered for the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from silograph._util.types import Vector
from silograph.experiments.comparison import ABLATION_ROWS, MAIN_ROWS, Choices
from silograph.experiments.figure_convergence import descents
from silograph.experiments.lab import Arrays
from silograph.experiments.recipe import Recipe
from silograph.experiments.scenarios import NESTED, SHARES, SIZES, UNEQUAL, UNRELATED, Scenario
from silograph.experiments.selection import CONSENSUS, Row, choose
from silograph.experiments.session import Session
from silograph.experiments.table_beta import AtBestBeta, at_best_beta
from silograph.experiments.table_sums import PERSONAL_ROWS, choices_of

EVEN = (*SIZES, *SHARES)
LOCAL_ROW = Row(label="PPGL-L", method="ppgl")
CONSENSUS_ROW = Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS)
Pairs = dict[str, tuple[Vector, Vector]]  # label to two sets of scores on the same draws


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the synthetic experiments gave."""

    recipe: Recipe
    choices: Choices
    sums: Choices  # of the consensus from one, two and three sums
    trials: Mapping[str, Sequence[Arrays]]  # by scenario
    descents: Sequence[Arrays]
    at_best_beta: Mapping[str, AtBestBeta]  # by scenario

    @property
    def n_draws(self) -> int:
        """How many draws there are of each scenario."""
        return len(self.trials[EVEN[0].label])

    def held_out(self, scenario: str, row: str) -> Vector:
        """F-scores of a row, one per seed, at the point that the other half of the seeds chose."""
        return self.choices[scenario][row].held_out

    def against(self, scenarios: Sequence[Scenario], rows: Sequence[str], others: Sequence[str]) -> Pairs:
        """Held-out scores of rows and others, to be compared."""
        return {
            f"{s.label}: {row} − {other}": (self.held_out(s.label, row), self.held_out(s.label, other))
            for s in scenarios
            for row in rows
            for other in others
        }


def gather(session: Session) -> Evidence:
    """Run what has not been run yet, and choose."""
    scenarios = (*EVEN, UNEQUAL, NESTED, *UNRELATED)
    trials = dict(zip((s.label for s in scenarios), session.trials(*scenarios), strict=True))
    rows = {
        **{s.label: MAIN_ROWS for s in EVEN},
        **{s.label: ABLATION_ROWS for s in (UNEQUAL, NESTED)},
        **{s.label: PERSONAL_ROWS for s in UNRELATED},
    }
    choices = {
        s.label: {row.label: choose(row, s, trials[s.label], session.recipe) for row in rows[s.label]}
        for s in scenarios
    }
    _, followed = descents(session)
    return Evidence(
        recipe=session.recipe,
        choices=choices,
        sums=choices_of(session),
        trials=trials,
        descents=followed,
        at_best_beta=at_best_beta(session),
    )
