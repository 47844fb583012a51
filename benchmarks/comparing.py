"""Comparisons of groups: how often one differs where none does, and how often a changed edge is named.

    python -m benchmarks.comparing [--quick] [--studies 500]

Every study goes all the way: signals are drawn, `ConsensusGraph(coupling=0.5, standardize=True, whole=True)` learns all
silos' graphs, and `compare_groups` compares them. Nothing is learned once and relabelled. Writes results/comparing.md,
in ten minutes on two cores; with --quick it only prints.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, kstest
from threadpoolctl import threadpool_limits

from silograph import ConsensusGraph, compare_groups
from silograph.analysis.comparing.study import Comparison
from silograph.analysis.comparing.sums import GroupSums, compare_sums

RESULTS = Path(__file__).parent / "results" / "comparing.md"
N_NODES, N_LOSABLE, N_PLACES = 12, 4, 3
RELABELLINGS, RELABELLINGS_OF_POWER = 199, 9999
LEVELS = (0.05, 0.1)
TESTS = ("pairs", "numbers of whole graphs", "graphs as a whole", "Welch on sums")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Studies of one kind."""

    says: str
    counts: tuple[int, int] = (12, 12)
    places: bool = False  # weights depend on the place, and so does who is of which group
    age: bool = False  # the same of a number
    adjusted: bool = True  # whether the comparison knows of them
    lacking: bool = False  # some silos lack a node or two, more often in the first group
    rows: tuple[tuple[int, int], tuple[int, int]] = ((100, 100), (100, 100))  # least and most in a silo of either group
    spreads: tuple[float, float] = (0.4, 0.4)  # of the logarithms of weights, whose mean is the same
    strength: float = 1.0  # an edge's weight in the first group, where that in the second is 1


@dataclass(frozen=True, slots=True)
class Shared:
    """What all silos of a study share: weights, and how places and age change them."""

    weights: np.ndarray
    of_place: np.ndarray
    of_age: np.ndarray


FEWER = ((60, 140), (100, 200))
CASES = (
    Case(says="nothing else"),
    Case(says="6 silos and 18", counts=(6, 18)),
    Case(says="4 silos and 5, all 126 relabellings", counts=(4, 5)),
    Case(says="sites", places=True),
    Case(says="a covariate", age=True),
    Case(says="a covariate, 5 silos and 6", age=True, counts=(5, 6)),
    Case(says="sites and a covariate", places=True, age=True),
    Case(says="sites and a covariate, 9 silos and 27", places=True, age=True, counts=(9, 27)),
    Case(says="missing nodes", lacking=True),
    Case(says="missing nodes, sites and a covariate", lacking=True, places=True, age=True),
    Case(says="60 to 140 rows, and 100 to 200; covariate: rows", rows=FEWER),
)
DIFFERENT = (
    Case(says="weights vary twice as much in the first group", spreads=(0.8, 0.4)),
    Case(says="the same, 6 silos and 18", spreads=(0.8, 0.4), counts=(6, 18)),
    Case(says="the same, 18 silos and 6", spreads=(0.8, 0.4), counts=(18, 6)),
    Case(says="60 to 140 rows, and 100 to 200", rows=FEWER, adjusted=False),
    Case(says="60 rows, and 200", rows=((60, 60), (200, 200)), adjusted=False),
)
CONTROLS = (
    Case(says="sites, not adjusted for", places=True, adjusted=False),
    Case(says="a covariate, not adjusted for", age=True, adjusted=False),
)
STRENGTHS, SIZES = (0.0, 0.5, 2.0, 3.0), (6, 12, 24, 48)


def draw(rng: np.random.Generator, case: Case) -> tuple[dict[str, np.ndarray], dict[str, dict[str, str]], int]:
    """Tables, people, and the pair whose weight may differ."""
    n, pairs = sum(case.counts), N_NODES * (N_NODES - 1) // 2
    edges = rng.permutation(pairs)[: pairs // 3]
    shared = Shared(np.zeros(pairs), np.zeros((N_PLACES, pairs)), np.zeros(pairs))
    shared.weights[edges] = rng.uniform(0.5, 1.5, edges.size)
    shared.of_place[:, edges] = rng.normal(0.0, 0.7, (N_PLACES, edges.size))
    shared.of_age[edges] = rng.uniform(0.0, 0.4, edges.size) * (rng.random(edges.size) < 0.5)
    age, place = rng.normal(size=n) * case.age, np.arange(n) % N_PLACES * case.places
    lean = rng.normal(size=n) + 1.2 * age + 1.2 * place
    is_first = np.argsort(np.argsort(-lean)) < case.counts[0]
    silos, people = {}, {}
    for k in range(n):
        group = 0 if is_first[k] else 1
        spread = case.spreads[group]
        weights = shared.weights * np.exp(rng.normal(-(spread**2) / 2, spread, pairs))
        weights *= np.exp(case.places * shared.of_place[place[k]])
        weights *= np.maximum(1 + shared.of_age * age[k], 0.1)
        weights[edges[0]] *= case.strength if group == 0 else 1.0
        least, most = case.rows[group]
        table = rows_of(rng, weights, int(rng.integers(least, most + 1)))
        if case.lacking and rng.random() < (0.3, 0.1)[group]:
            table[:, rng.permutation(N_LOSABLE)[: rng.integers(1, 3)]] = np.nan
        silos[f"s{k}"] = table
        known = {"dx": "ab"[group], "age": float(age[k]), "place": f"place {place[k]}", "rows": len(table)}
        people[f"s{k}"] = {name: str(value) for name, value in known.items()}
    return silos, people, int(edges[0])


def rows_of(rng: np.random.Generator, weights: np.ndarray, n_rows: int) -> np.ndarray:
    """Gaussian signals that are smooth on the graph of these weights."""
    w = np.zeros((N_NODES, N_NODES))
    w[np.triu_indices(N_NODES, 1)] = weights
    w += w.T
    precision = np.diag(w.sum(axis=0) + 0.3) - w
    table: np.ndarray = rng.normal(size=(n_rows, N_NODES)) @ np.linalg.inv(np.linalg.cholesky(precision)).T
    return table


def study(case: Case, seed: int, permutations: int) -> tuple[Comparison, int]:
    """One study from signals to the comparison, and the pair whose weight may differ."""
    warnings.simplefilter("ignore")
    silos, people, changed = draw(np.random.default_rng([seed, *case.says.encode()]), case)
    model = ConsensusGraph(
        coupling=0.5, standardize=True, whole=True, n_jobs=1, missing_nodes="allow" if case.lacking else "error"
    )
    explains = {"age": case.age, "rows": case.rows == FEWER}
    with threadpool_limits(1):
        told = compare_groups(
            model.fit(silos),
            people,
            column="dx",
            covariates=[name for name, some in explains.items() if some and case.adjusted],
            sites="place" if case.places and case.adjusted else None,
            permutations=permutations,
            seed=seed,
        )
    return told, changed


def smallest_ps(seed: int, case: Case) -> tuple[float, ...]:
    """The smallest adjusted p of each of TESTS."""
    told, _ = study(case, seed, RELABELLINGS)
    values, first = told.pairs.values, told.design.is_first
    by_sums = np.nan  # adjusts for nothing, and is refused where nodes are missing
    if told.design.is_plain and not case.lacking:
        by_sums = float(np.nanmin(compare_sums(sums_of(values[first]), sums_of(values[~first])).p_family))
    smallest = [float(np.nanmin(found.p_family)) for found in (told.edges, told.graphs)]
    return (*smallest, told.likeness.p, by_sums)


def sums_of(values: np.ndarray) -> GroupSums:
    """What sites would send of a group."""
    return GroupSums(count=len(values), total=values.sum(axis=0), squares=(values**2).sum(axis=0), step=2.0**-88)


def named(seed: int, case: Case) -> tuple[bool, bool, int]:
    """Whether the changed edge is named by its adjusted p and by q, and how many others by adjusted p."""
    told, changed = study(case, seed, RELABELLINGS_OF_POWER)
    rows, cols = np.triu_indices(N_NODES, 1)
    here = (told.pairs.rows == rows[changed]) & (told.pairs.cols == cols[changed])
    family, q = (np.nan_to_num(found, nan=1.0) <= LEVELS[0] for found in (told.edges.p_family, told.edges.q))
    return bool(family[here].any()), bool(q[here].any()), int(family[~here].sum())


def null_table(test: int, found: Sequence[tuple[Case, np.ndarray]]) -> Iterator[str]:
    """One test's p-values: how many are small, and whether they are smaller than uniform ones."""
    yield "| studies | p ≤ .05 | p ≤ .1 | smaller than uniform: KS p |"
    yield "|---|---|---|---|"
    for case, columns in found:
        ps = columns[:, test]
        if np.isnan(ps).any():
            continue
        rates = []
        for level in LEVELS:
            # 10 of 200 relabellings as large are a p of exactly .05
            count = int((ps <= level + 1e-9).sum())
            low, high = binomtest(count, ps.size).proportion_ci()
            rates.append(f"{count / ps.size:.1%} ({low:.1%} to {high:.1%})")
        yield f"| {case.says} | {' | '.join(rates)} | {kstest(ps, 'uniform', alternative='greater').pvalue:.2g} |"
    yield ""


def null_lines(run: Callable[..., Iterator[tuple]], n_studies: int) -> Iterator[str]:
    """All conditions by all tests."""
    found = []
    for case in (*CASES, *DIFFERENT, *CONTROLS):
        found.append((case, np.array(list(run(partial(smallest_ps, case=case), range(n_studies))))))
        print(f"{case.says}: {n_studies} studies", file=sys.stderr, flush=True)
    parts = np.cumsum([len(CASES), len(DIFFERENT)])
    for title, some in (
        ("Nothing differs", found[: parts[0]]),
        ("Groups differ, but not in mean weights", found[parts[0] : parts[1]]),
        ("Controls, which must break", found[parts[1] :]),
    ):
        yield from (f"## {title}", "")
        for test, name in enumerate(TESTS):
            lines = list(null_table(test, some))
            if len(lines) > 3:
                yield from (f"**{name[0].upper()}{name[1:]}**", "", *lines)


def power_lines(run: Callable[..., Iterator[tuple]], n_studies: int) -> Iterator[str]:
    """How often the changed edge is named."""
    yield from ("## Power: one edge's weight is changed in the first group", "")
    yield "| weight, times | silos of each group | named by adjusted p | by q | other pairs named |"
    yield "|---|---|---|---|---|"
    for strength in STRENGTHS:
        for size in SIZES:
            case = replace(CASES[0], counts=(size, size), strength=strength)
            by_family, by_q, others = np.mean(list(run(partial(named, case=case), range(n_studies))), axis=0)
            yield f"| {strength:g} | {size} | {by_family:.0%} | {by_q:.0%} | {others:.2f} |"
        print(f"weight times {strength:g}: {n_studies} studies of each size", file=sys.stderr, flush=True)
    yield ""


def main() -> None:
    """Measure all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few studies of each kind, and only print")
    parser.add_argument("--studies", type=int, default=500, help="of each kind where nothing differs")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    n_null, n_power = (6, 3) if asked.quick else (asked.studies, max(1, asked.studies // 5))
    with ProcessPoolExecutor(asked.jobs) as pool:
        run = partial(pool.map, chunksize=max(1, n_power // 4))
        lines = [
            "# Comparing groups: measured",
            "",
            f"`python -m benchmarks.comparing`: {n_null} studies of each kind, {n_power} for each row of power. "
            f"{N_NODES} nodes, 12 silos in each group and 100 rows in each silo where nothing else is said. Each study "
            "is drawn, learned (coupling .5, standardised, whole) and compared. p is a study's smallest adjusted p, "
            f"with {RELABELLINGS} relabellings; power is with {RELABELLINGS_OF_POWER}. In brackets are 95 % intervals. "
            "KS: Kolmogorov & Smirnov, one-sided, of all studies' p against uniform ones.",
            "",
            *null_lines(run, n_null),
            *power_lines(run, n_power),
        ]
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    if not asked.quick:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
