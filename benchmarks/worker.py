"""One step of a suite, in a process of its own: `python -m benchmarks.worker SUITE STEP FOLDER [ARGUMENTS]`.

`build` turns case.json into an instance, `solve NAME SECONDS` times a solver on it; a suite may have more steps. Each
writes result.json.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import measure
from benchmarks.solver import Solver
from benchmarks.suite import Competitor


def find_competitor(suite: str, name: str) -> tuple[Competitor, Solver]:
    """A competitor of this name, and how it is run."""
    catalogue = importlib.import_module(f"benchmarks.{suite}.catalogue")
    (competitor,) = (one for one in catalogue.EVERYBODY if one.name == name)
    return competitor, importlib.import_module(f"benchmarks.{suite}.solvers.{competitor.module}").SOLVERS[name]


def solve(suite: str, folder: Path, name: str, limit: float) -> dict[str, Any]:
    """Time one solver on the instance in the folder."""
    steps = importlib.import_module(f"benchmarks.{suite}.steps")
    competitor, solver = find_competitor(suite, name)
    problem, lower_bound = steps.load(folder, competitor)
    before = peak_mb()
    found = measure(solver, problem, lower_bound, limit, steps.RULER)
    return found.as_record() | {"before_mb": before, "peak_mb": peak_mb()}


def peak_mb() -> float:
    """The most memory this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _do(suite: str, step: str, folder: Path, *arguments: str) -> Any:
    if step == "solve":
        return solve(suite, folder, arguments[0], float(arguments[1]))
    return importlib.import_module(f"benchmarks.{suite}.steps").STEPS[step](folder, *arguments)


if __name__ == "__main__":
    where = Path(sys.argv[3])
    (where / "result.json").write_text(json.dumps(_do(sys.argv[1], sys.argv[2], where, *sys.argv[4:])))
