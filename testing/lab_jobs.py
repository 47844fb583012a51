"""Work for the lab whose every run leaves a trace, in a module of its own so that other processes can import it."""

from dataclasses import dataclass
from pathlib import Path
from time import sleep

import numpy as np

from silograph.experiments.lab import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A number to square."""

    number: int
    folder: Path  # where each run leaves a line, and where a file `trap` makes job 2 fail
    wait: float = 0.0


def square(job: Job) -> Arrays:
    """The square, and the seconds that two methods would have taken."""
    sleep(job.wait)
    if job.number == 2 and (job.folder / "trap").exists():
        raise ArithmeticError("job 2 fell into the trap")
    with (job.folder / "log").open("a") as log:
        log.write(f"{job.number}\n")
    return {
        "square": np.array(float(job.number**2)),
        "flat": np.zeros((50, 40)),  # compresses well, as scores do
        "quick/seconds": np.array(0.5),
        "slow/seconds": np.array(float(job.number)),
    }


def runs(folder: Path) -> list[int]:
    """The numbers of the jobs that were run, in order of their ends."""
    log = folder / "log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []
