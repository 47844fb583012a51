"""Relabellings of silos: all there are, where these are few, or random ones; silos change places within sites only."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, permutations, product
from math import comb, factorial, prod

import numpy as np

from silograph._util.types import BoolVector, IntVector
from silograph.analysis.comparing.design import Design

Orders = np.ndarray  # (relabellings, silos): whose place in the design each silo takes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relabellings:
    """Which relabellings a test is made of; the true labelling is one of them."""

    design: Design
    labels_only: bool  # labels decide the statistic, so that changes within a group are none
    asked: int
    seed: int

    @property
    def possible(self) -> int:
        """How many different ones there are, the true one included."""
        return self._labellings if self.labels_only else prod(factorial(len(some)) for some in self._members)

    @property
    def exhaustive(self) -> bool:
        """Whether all are looked at."""
        return self.possible <= self.asked + 1

    @property
    def count(self) -> int:
        """How many are looked at, the true one included."""
        return self.possible if self.exhaustive else self.asked + 1

    @property
    def smallest_p(self) -> float:
        """The least p-value that there can be."""
        if self.design.covariates.shape[1]:
            return 1 / self.count
        # Where groups are equally large, exchanging them is as extreme
        twice = all(2 * int(some.sum()) == len(some) for some in self._members)
        return max(1 / self.count, (2 if twice else 1) / self._labellings)

    @property
    def _members(self) -> list[BoolVector]:
        """Of each site, which silos are of the first group."""
        return [self.design.is_first[self.design.site == site] for site in np.unique(self.design.site)]

    @property
    def _labellings(self) -> int:
        return prod(comb(len(some), int(some.sum())) for some in self._members)

    def batches(self, size: int) -> Iterator[Orders]:
        """The relabellings, so many at once; where they are random, without the true one."""
        if self.exhaustive:
            every = self._every()
            while some := list(islice(every, size)):
                yield np.array(some)
            return
        rng, left = np.random.default_rng(self.seed), self.asked
        while left:
            keys = rng.random((min(size, left), self.design.site.size))
            yield orders_by(keys, self.design.site)
            left -= len(keys)

    def _every(self) -> Iterator[IntVector]:
        site = self.design.site
        places = [np.flatnonzero(site == one).astype(np.int32) for one in np.unique(site)]
        choices = [list(self._within(place)) for place in places]
        for chosen in product(*choices):
            order = np.empty(site.size, dtype=np.int32)
            for place, taken in zip(places, chosen, strict=True):
                order[place] = taken
            yield order

    def _within(self, place: IntVector) -> Iterator[IntVector]:
        if not self.labels_only:
            for order in permutations(place.tolist()):
                yield np.array(order, dtype=np.int32)
            return
        is_first = self.design.is_first[place]
        for chosen in combinations(range(len(place)), int(is_first.sum())):
            picked, taken = np.isin(np.arange(len(place)), chosen), np.empty_like(place)
            taken[picked], taken[~picked] = place[is_first], place[~is_first]
            yield taken


def orders_by(keys: np.ndarray, site: IntVector) -> Orders:
    """The silos of each site in the order of their keys, a relabelling per row."""
    base, orders = np.argsort(site, kind="stable"), np.empty(keys.shape, dtype=np.int32)
    # Keys of a site lie between its number and the next
    by_key = np.argsort(site + keys, axis=1, kind="stable")
    orders[:, base] = by_key
    return orders


def restricted(orders: Orders, site: IntVector, kept: np.ndarray) -> Orders:
    """What relabellings of all silos say of some: the order in which these come, by their numbers among themselves."""
    if kept.all():
        return orders
    ranks = np.argsort(np.argsort(orders[:, kept], axis=1), axis=1)
    return orders_by(ranks / kept.sum(), site[kept])
