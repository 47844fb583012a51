"""Every competitor on one instance, in turns: A B C, A B C, so that whatever slows the machine down hits all alike.

Each first finds out alone what it needs for each target. Then come the laps. A ratio is of times of the same lap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.processes import Solving, StepError, build
from benchmarks.suite import Case, Competitor, Effort, Record

SCORING = 6  # times the limit, for scoring; after that, and a minute for imports, a process is ended
SLOW, SLOW_LAPS = 1.0, 3  # who needs more seconds in a lap sits out after so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Who competes in a suite, and who need not be asked any more."""

    suite: str
    competitors: Sequence[Competitor]
    gave_up: Callable[[Competitor, Case, Sequence[Record]], bool] = lambda competitor, case, earlier: False

    def measure(self, case: Case, effort: Effort, earlier: Sequence[Record]) -> Record:
        """What all of them need on this instance."""
        with TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            instance = build(self.suite, folder, case)
            solvers: dict[str, Record] = {}
            racing: dict[str, Solving] = {}
            for competitor in (one for one in self.competitors if _may(one, case, effort)):
                if reason := self._excuse(competitor, case, earlier):
                    solvers[competitor.name] = {"outcome": "skipped", "laps": [], "reason": reason}
                    continue
                solving = stack.enter_context(Solving(self.suite, competitor, folder, effort.time_limit))
                solvers[competitor.name] = found = _searched(solving, effort)
                if found.get("effort"):
                    racing[competitor.name] = solving
            _race(racing, solvers, effort)
        return {"instance": instance, "solvers": solvers}

    def _excuse(self, competitor: Competitor, case: Case, earlier: Sequence[Record]) -> str:
        if missing := competitor.missing():
            return f"{', '.join(missing)} not installed"
        return "missed 1e-4 on a smaller one" if self.gave_up(competitor, case, earlier) else ""


def _may(competitor: Competitor, case: Case, effort: Effort) -> bool:
    too_large = competitor.max_nodes is not None and case.n_nodes > competitor.max_nodes
    return not too_large and (competitor.quick or not effort.quick)


def _searched(solving: Solving, effort: Effort) -> Record:
    try:
        return solving.answer(SCORING * effort.time_limit + 60) | {"laps": []}
    except StepError as error:
        return {"outcome": str(error), "laps": []}


def _race(racing: dict[str, Solving], solvers: dict[str, Record], effort: Effort) -> None:
    for lap in range(effort.laps):
        for name, solving in list(racing.items()):
            laps = solvers[name]["laps"]
            if lap >= SLOW_LAPS and sum(laps[0]["seconds"].values()) > SLOW:
                continue
            try:
                laps.append(solving.lap(SCORING * effort.time_limit + 60))
            except StepError as error:
                solvers[name] = {"outcome": str(error), "laps": []}
                del racing[name]
