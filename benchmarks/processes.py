"""Each step of a benchmark in a process of its own, on one thread, so that its memory and compiled code are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.suite import Case, Competitor

ROOT = Path(__file__).resolve().parent.parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
LONGEST_STEP = 900  # seconds for a step that has no limit of its own


def work(suite: str, step: str, folder: Path, *arguments: object, seconds: float = LONGEST_STEP) -> Any:
    """Do one step of a suite's worker; what it found."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", suite, step, str(folder), *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | ONE_THREAD,
        timeout=seconds,
        check=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return json.loads((folder / "result.json").read_text())


def build(suite: str, folder: Path, case: Case) -> Any:
    """Make the instance of a case in the folder; what is told about it."""
    (folder / "case.json").write_text(json.dumps(asdict(case)))
    return work(suite, "build", folder)


def attempt(
    suite: str, competitor: Competitor, step: str, folder: Path, arguments: Iterable[object] = (), *, seconds: float
) -> dict[str, Any]:
    """Do one step for a competitor, who may be missing, fail, or take too long."""
    if missing := competitor.missing():
        return {"outcome": "skipped", "seconds": {}, "reason": f"{', '.join(missing)} not installed"}
    try:
        return {"outcome": "ran"} | work(suite, step, folder, competitor.name, *arguments, seconds=seconds)
    except subprocess.TimeoutExpired:
        return {"outcome": "out of time", "seconds": {}}
    except subprocess.CalledProcessError as error:
        return {"outcome": "failed", "seconds": {}, "reason": error.stderr.strip().splitlines()[-1]}
