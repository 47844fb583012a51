"""The lab: runs many independent jobs on several cores, and keeps what is finished, so that a stopped run goes on.

A finished job is one file, named after all that its numbers depend on: the job itself and the source of silograph.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from silograph._util.files import make_folder, writing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Job = TypeVar("Job", bound="DataclassInstance")

Arrays = dict[str, np.ndarray]
# What learns, and of this package what only shows results: a new colour must not cost a new run
LEARNING = (
    "_util", "analysis", "data", "datasets", "engine", "estimators", "experiments", "graph", "local", "methods",
    "metrics.py", "protocol",
)  # fmt: skip
SHOWING = (
    "accuracy", "catalogue", "claims", "comparison", "evidence", "figure", "files", "findings", "index", "lab",
    "outcome", "printed", "selection", "session", "table",
)  # fmt: skip
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "networkx")  # whose versions may change a number
SECONDS = "/seconds"  # how the name of an array ends that tells what a method cost
OnProgress = Callable[[str, int, int], None]  # what is done, how many jobs are finished, of how many


def _silent(title: str, done: int, total: int) -> None:
    del title, done, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """Where jobs are run."""

    workers: int = 1
    kept: Path | None = None  # folder of finished jobs; None: they are not kept
    on_progress: OnProgress = _silent
    spent: dict[str, dict[str, float]] = field(default_factory=dict)  # by job and method, seconds of work

    def results(self, title: str, work: Callable[[Job], Arrays], jobs: Sequence[Job]) -> list[Arrays]:
        """What `work` makes of each job, in order; `work` is a function of a module, and of its job alone."""
        files = [self._file(work, job) for job in jobs]
        found: dict[int, Arrays] = {}
        for index, file in enumerate(files):
            arrays = None if file is None else _read(file)
            if arrays is not None:
                found[index] = arrays
        self.on_progress(title, len(found), len(jobs))
        missing = [index for index in range(len(jobs)) if index not in found]
        running = Parallel(n_jobs=min(self.workers, max(len(missing), 1)), return_as="generator_unordered")
        for index, arrays in running(delayed(_run)(index, work, jobs[index], files[index]) for index in missing):
            found[index] = arrays
            self.on_progress(title, len(found), len(jobs))
        for index, job in enumerate(jobs):
            self.spent[_key(work, job)] = {
                name.removesuffix(SECONDS): float(values)
                for name, values in found[index].items()
                if name.endswith(SECONDS)
            }
        return [found[index] for index in range(len(jobs))]

    def seconds_by_method(self) -> dict[str, float]:
        """What the jobs asked for so far cost, method by method, the most expensive first."""
        methods = {method for of_job in self.spent.values() for method in of_job}
        sums = {method: sum(of_job.get(method, 0.0) for of_job in self.spent.values()) for method in methods}
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def _file(self, work: Callable[[Job], Arrays], job: Job) -> Path | None:
        if self.kept is None:
            return None
        make_folder(self.kept)
        return self.kept / f"{_key(work, job)}.npz"


def _key(work: Callable[[Job], Arrays], job: Job) -> str:
    """A name for the job and for all that its numbers depend on."""
    sources = getattr(job, "sources", LEARNING)
    says = json.dumps([work.__name__, asdict(job), source_digest(sources)], sort_keys=True, default=str)
    return f"{work.__name__}-{hashlib.sha256(says.encode()).hexdigest()[:24]}"


def _run(index: int, work: Callable[[Job], Arrays], job: Job, file: Path | None) -> tuple[int, Arrays]:
    with threadpool_limits(1):  # the same sums, to the last bit, however many jobs run beside this one
        arrays = work(job)
    if file is not None:
        named: dict[str, Any] = dict(arrays)
        with writing(file) as beside:
            np.savez_compressed(beside, **named)
    return index, arrays


def _read(file: Path) -> Arrays | None:
    """A finished job; None where there is none, or where the file cannot be read and must be made anew."""
    try:
        with file.open("rb") as opened:  # NumPy may leave a damaged file open
            kept = np.load(opened, allow_pickle=False)
            return {name: kept[name] for name in kept.files}  # an .npy file has no .files
    except (OSError, ValueError, EOFError, AttributeError, NotImplementedError, BadZipFile, zlib.error):
        return None


@cache
def source_digest(sources: tuple[str, ...] = LEARNING) -> str:
    """A name for this version of all code that learns, so that no result of another is taken for one of this.

    A job that none of our methods takes part in may name fewer `sources`: folders and files of the package.
    """
    digest = hashlib.sha256(" ".join(version(library) for library in LIBRARIES).encode())
    here = Path(__file__).parent
    root = here.parent
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root)
        showing = file.parent == here and file.name.startswith(SHOWING)
        if not showing and any(place.is_relative_to(source) for source in sources):
            digest.update(str(place).encode() + file.read_bytes())
    return digest.hexdigest()
