"""Many studies in one call: folds, half-samples, a path of couplings.

Each is learned by `learn_silos`, in a thread of its own: compiled loops run without the interpreter's lock, so that
studies keep all cores busy, while the silos of one study are asked one after the other.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from silograph._util.checks import check_whole
from silograph._util.types import Vector
from silograph.engine.study import StudyResult, learn_silos
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo

AHEAD = 2  # studies made ahead of each worker, so that a long batch is never in memory at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """What to learn from, and how."""

    silos: tuple[Silo, ...]
    settings: StudySettings
    start: Vector | None = None  # the consensus of a similar study


def learn_batch(studies: Iterable[Study], *, workers: int | None = None) -> Iterator[StudyResult]:
    """The result of each study, in order, as soon as it and those before it are there.

    Studies are taken from `studies` as they are needed. They share no state: silos of two studies may hold the same
    arrays, but not be the same objects. Results have the bits of `learn_silos`, whatever the number of `workers` (None:
    one per core). An error of one study is raised in its turn.
    """
    check_whole("workers", workers := (os.cpu_count() or 1) if workers is None else workers, least=1)
    if workers == 1:
        yield from map(_learn, studies)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from _in_order(pool, _learn, iter(studies), AHEAD * workers)


def _learn(study: Study) -> StudyResult:
    return learn_silos(study.silos, study.settings, start=study.start, workers=1)


def _in_order(
    pool: ThreadPoolExecutor, learn: Callable[[Study], StudyResult], studies: Iterator[Study], ahead: int
) -> Iterator[StudyResult]:
    waiting = [pool.submit(learn, study) for study in islice(studies, ahead)]
    try:
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(learn, study) for study in islice(studies, 1)]
    finally:
        for future in waiting:
            future.cancel()
