"""The synthetic situations of the paper's Section V: who has how many samples, and how much the silos share.

Ours beside them: some of the silos have nothing to do with the others.
"""

from dataclasses import dataclass

BASELINES = ("igl", "igl-own", "fedavg", "fedprox", "mrmtl", "ditto")
MAIN = (*BASELINES, "ppgl", "exact")
ABLATION = ("ppgl", "ppgl-equal", "exact", "exact-equal")
SUMS = ("sum", "sum-home", "sum-1", "sum-2", "sum-3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One situation; all methods below learn from the same signals of it."""

    label: str
    n_samples: tuple[int, ...]  # of each silo
    shared: float | tuple[float, ...]  # q; one per silo: nested graphs
    methods: tuple[str, ...]
    unrelated: int = 0  # how many silos, of the last, have a graph of another draw


def even(label: str, *, n_samples: int, shared: float) -> Scenario:
    """Five silos with equally many samples."""
    return Scenario(label=label, n_samples=(n_samples,) * 5, shared=shared, methods=(*MAIN, *SUMS))


SIZES = tuple(even(f"N = {n}", n_samples=n, shared=0.5) for n in (20, 50, 100))  # Table I
SHARES = tuple(even(f"q = {q}", n_samples=50, shared=q) for q in (0.3, 0.6, 0.9))  # Table II
UNEQUAL = Scenario(label="Case 1", n_samples=(20, 40, 60, 80, 100), shared=0.5, methods=(*BASELINES, *ABLATION, *SUMS))
NESTED = Scenario(label="Case 2", n_samples=(100,) * 5, shared=(1.0, 0.8, 0.6, 0.4, 0.2), methods=(*ABLATION, *SUMS))
UNRELATED = tuple(
    Scenario(
        label=f"{scenario.label}, {count} of 5 unrelated",
        n_samples=scenario.n_samples,
        shared=scenario.shared,
        methods=("exact", *SUMS),
        unrelated=count,
    )
    for scenario in (SIZES[-1], SHARES[-1])
    for count in (1, 2)
)
