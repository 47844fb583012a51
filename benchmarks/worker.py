"""One step of a suite, in a process of its own: `python -m benchmarks.worker SUITE STEP FOLDER [ARGUMENTS]`.

`build` turns case.json into an instance; a suite may have more steps. Each writes result.json. `solve NAME SECONDS`
stays: it answers with what a solver needs on the instance, and then each line that it is sent with a lap's times.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import TextIO

from benchmarks.measure import by_name, search
from benchmarks.solver import Solver
from benchmarks.suite import Competitor


def find_competitor(suite: str, name: str) -> tuple[Competitor, Solver]:
    """A competitor of this name, and how it is run."""
    catalogue = importlib.import_module(f"benchmarks.{suite}.catalogue")
    (competitor,) = (one for one in catalogue.EVERYBODY if one.name == name)
    return competitor, importlib.import_module(f"benchmarks.{suite}.solvers.{competitor.module}").SOLVERS[name]


def solve(suite: str, folder: Path, name: str, limit: float, answers: TextIO) -> None:
    """Find what one solver needs on the instance in the folder, then time it whenever it is asked to."""
    steps = importlib.import_module(f"benchmarks.{suite}.steps")
    competitor, solver = find_competitor(suite, name)
    problem, lower_bound = steps.load(folder, competitor)
    before = peak_mb()
    measurement = search(solver, problem, lower_bound, limit, steps.RULER)
    found = measurement.found.as_record() | {"before_mb": before, "peak_mb": peak_mb()}
    print(json.dumps(found), file=answers, flush=True)
    for _ in sys.stdin:
        lap = measurement.lap(solver)
        times = {"seconds": by_name(lap.seconds), "solver_seconds": by_name(lap.solver_seconds)}
        print(json.dumps(times), file=answers, flush=True)


def peak_mb() -> float:
    """The most memory this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _answers() -> TextIO:
    """The output that is answered on, which is no longer the one that solvers print to."""
    kept = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return kept


def _main(suite: str, step: str, where: str, *arguments: str) -> None:
    folder = Path(where)
    if step == "solve":
        solve(suite, folder, arguments[0], float(arguments[1]), _answers())
    else:
        found = importlib.import_module(f"benchmarks.{suite}.steps").STEPS[step](folder, *arguments)
        (folder / "result.json").write_text(json.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
