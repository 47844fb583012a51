"""Many studies in one call: folds, half-samples, a path of couplings.

Each is learned by `learn_silos`, several at a time in threads: compiled loops run without the interpreter's lock, so
that studies keep all cores busy, while the silos of one study are asked one after the other. Small studies come one by
one: their loops are so short that threads would wait for the lock longer than they compute (100 studies of 5 × 34 nodes
take 1.1 s in one thread and 1.8 s in two).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from silograph._util.checks import check_whole
from silograph._util.types import Vector
from silograph.engine.study import StudyResult, learn_silos
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import FixedModel
from silograph.protocol.group import THREADS_FROM
from silograph.protocol.silo import Silo

T = TypeVar("T")
R = TypeVar("R")
AHEAD = 2  # studies made ahead of each worker, so that a long batch is never in memory at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Study:
    """What to learn from, and how."""

    silos: tuple[Silo, ...]
    settings: StudySettings
    start: Vector | None = None  # the consensus of a similar study
    fixed: FixedModel | None = None  # parameters found before


def learn_batch(studies: Iterable[Study], *, workers: int | None = None) -> Iterator[StudyResult]:
    """The result of each study, in order, as soon as it and those before it are there.

    Studies are taken from `studies` as they are needed. They share no state: silos of two studies may hold the same
    arrays, but not be the same objects. Results have the bits of `learn_silos`, whatever the number of `workers` (None:
    one per core, or one alone if the first study is small). An error of one study is raised in its turn.
    """
    return map_in_order(_learn, studies, workers=workers, large=lambda study: is_large(study.silos))


def map_in_order(
    function: Callable[[T], R], items: Iterable[T], *, workers: int | None, large: Callable[[T], bool]
) -> Iterator[R]:
    """The function's value of each item, in order; several at a time in threads if the first item is large."""
    if workers is not None:
        check_whole("workers", workers, least=1)
    coming = iter(items)
    for first in coming:
        n_threads = workers or ((os.cpu_count() or 1) if large(first) else 1)
        whole = chain([first], coming)
        if n_threads == 1:
            yield from map(function, whole)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield from _in_order(pool, function, whole, AHEAD * n_threads)


def is_large(silos: Sequence[Silo]) -> bool:
    """Whether their loops are long enough for threads to be worth it."""
    return silos[0].study_pairs.size >= THREADS_FROM


def _learn(study: Study) -> StudyResult:
    return learn_silos(study.silos, study.settings, start=study.start, fixed=study.fixed, workers=1)


def _in_order(pool: ThreadPoolExecutor, function: Callable[[T], R], items: Iterator[T], ahead: int) -> Iterator[R]:
    waiting = [pool.submit(function, item) for item in islice(items, ahead)]
    try:
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(function, item) for item in islice(items, 1)]
    finally:
        for future in waiting:
            future.cancel()
