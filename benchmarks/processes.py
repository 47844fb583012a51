"""Each step of a benchmark in a process of its own, on one thread, so that its memory and compiled code are its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from benchmarks.suite import Case, Competitor, Record

ROOT = Path(__file__).resolve().parent.parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
LONGEST_STEP = 900  # seconds for a step that has no limit of its own


class StepError(Exception):
    """A step that failed or took too long; the text says which."""


def _command(suite: str, step: str, folder: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "benchmarks.worker", suite, step, str(folder), *map(str, arguments)]


def work(suite: str, step: str, folder: Path, *arguments: object) -> Any:
    """Do one step of a suite's worker; what it found."""
    done = subprocess.run(
        _command(suite, step, folder, *arguments),
        cwd=ROOT,
        env=os.environ | ONE_THREAD,
        timeout=LONGEST_STEP,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        raise StepError(f"failed: {_last_line(done.stderr)}")
    return json.loads((folder / "result.json").read_text())


def work_alone(suite: str, step: str, *arguments: object) -> Any:
    """Do one step that needs no instance."""
    with TemporaryDirectory() as name:
        return work(suite, step, Path(name), *arguments)


def build(suite: str, folder: Path, case: Case) -> Any:
    """Make the instance of a case in the folder; what is told about it."""
    (folder / "case.json").write_text(json.dumps(asdict(case)))
    return work(suite, "build", folder)


class Solving:
    """A solver in its process, which waits while others have their turn."""

    def __init__(self, suite: str, competitor: Competitor, folder: Path, limit: float) -> None:
        self._errors = folder / f"{competitor.name}.txt"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                _command(suite, "solve", folder, competitor.name, limit),
                cwd=ROOT,
                env=os.environ | ONE_THREAD,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def answer(self, seconds: float) -> Record:
        """What it says next, within so many seconds."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            raise StepError("out of time")
        line = self._process.stdout.readline()
        if not line:
            raise StepError(f"failed: {_last_line(self._errors.read_text())}")
        answer: Record = json.loads(line)
        return answer

    def lap(self, seconds: float) -> Record:
        """The times of one more lap."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # of a process that is gone: there is no answer, and that says why
            self._process.stdin.write("lap\n")
            self._process.stdin.flush()
        return self.answer(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
