"""How a claim is put to the test; a verdict follows from the numbers and from the rules and margins here.

Comparisons are paired: two methods on the same draws, by scores that are held out. A difference is clear where
Wilcoxon's signed-rank test gives p < 0.05 after Holm's correction over all comparisons of the claim, and the mean
points the same way as the ranks. Two methods are alike where the 95 % interval of the mean difference is within ±0.02.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from silograph._util.types import Vector

Verdict = Literal["held", "held in part", "held in the mean only", "did not hold", "too few draws", "not tested"]
LEVEL = 0.05
MARGIN = 0.02  # of a score: less does not matter
SAME = 1e-9  # what two ways of rounding may differ by
HELD_OUT_FS = "FS, held out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim, what became of it, and the evidence in Markdown."""

    says: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """One set of scores against another on the same draws."""

    label: str
    n: int
    mean: float  # first minus second
    low: float  # 95 % interval of the mean
    high: float
    p: float  # Wilcoxon's signed-rank test, two-sided; 1 where nothing differs
    direction: int  # sign of the sum of signed ranks

    @property
    def wins(self) -> bool:
        """Whether the first is clearly better, the p-value being corrected already."""
        return self.p < LEVEL and self.direction > 0 and self.mean > 0

    @property
    def loses(self) -> bool:
        """Whether the first is clearly worse."""
        return self.p < LEVEL and self.direction < 0 and self.mean < 0

    @property
    def is_alike(self) -> bool:
        """Whether any difference is too small to matter."""
        return self.low > -MARGIN and self.high < MARGIN


def compare(label: str, first: Vector, second: Vector) -> PairedTest:
    """Compare draw by draw."""
    apart = first - second
    apart = np.where(np.abs(apart) < SAME, 0.0, apart)
    mean, n = float(apart.mean()), apart.size
    if n < 2 or not apart.any():
        return PairedTest(label=label, n=n, mean=mean, low=mean, high=mean, p=1.0, direction=0)
    half = float(stats.t.ppf(0.975, n - 1) * apart.std(ddof=1) / np.sqrt(n))
    moved = apart[apart != 0]
    ranks = np.sign(moved) * stats.rankdata(np.abs(moved))
    return PairedTest(
        label=label,
        n=n,
        mean=mean,
        low=mean - half,
        high=mean + half,
        p=float(stats.wilcoxon(apart).pvalue),
        direction=int(np.sign(ranks.sum())),
    )


def holm(comparisons: Sequence[PairedTest]) -> list[PairedTest]:
    """The same with p-values corrected for their number."""
    order = np.argsort([c.p for c in comparisons], kind="stable")
    out, worst = list(comparisons), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * comparisons[index].p))
        out[index] = replace(comparisons[index], p=worst)
    return out


def better_than(
    says: str, pairs: Mapping[str, tuple[Vector, Vector]], *, unit: str = HELD_OUT_FS, after: str = ""
) -> Claim:
    """A claim that the first is better than the second in every comparison."""
    tests = holm([compare(label, first, second) for label, (first, second) in pairs.items()])
    wins, losses = sum(test.wins for test in tests), sum(test.loses for test in tests)
    above = sum(test.mean > 0 for test in tests)
    verdict: Verdict = "did not hold"
    if not can_tell(tests[0].n, len(tests)):
        verdict = "too few draws"
    elif wins == len(tests):
        verdict = "held"
    elif wins > 0:
        verdict = "held in part"
    elif above == len(tests):
        verdict = "held in the mean only"
    tally = f"Clearly higher in {wins} of {len(tests)} comparisons, clearly lower in {losses}; higher mean in {above}."
    evidence = f"{tally}{' ' if after else ''}{after}\n\n{table_of(tests, unit)}"
    return Claim(says=says, verdict=verdict, evidence=evidence)


def as_good_as(
    says: str, pairs: Mapping[str, tuple[Vector, Vector]], *, unit: str = HELD_OUT_FS, after: str = ""
) -> Claim:
    """A claim that two are alike in every comparison."""
    tests = holm([compare(label, first, second) for label, (first, second) in pairs.items()])
    alike, apart = sum(test.is_alike for test in tests), sum(test.wins or test.loses for test in tests)
    verdict = verdict_of([alike == len(tests), alike > 0])
    tally = f"Alike within {MARGIN:g} in {alike} of {len(tests)} comparisons, clearly different in {apart}."
    evidence = f"{tally}{' ' if after else ''}{after}\n\n{table_of(tests, unit)}"
    return Claim(says=says, verdict=verdict, evidence=evidence)


def can_tell(n_draws: int, n_tests: int = 1) -> bool:
    """Whether so many draws could show a difference at all: the least p of a signed-rank test is 2/2ⁿ."""
    return n_tests * 2 / 2.0**n_draws < LEVEL


def table_of(tests: Sequence[PairedTest], unit: str) -> str:
    """Comparisons as a Markdown table."""
    lines = [f"| | mean difference in {unit} | 95 % interval, each alone | p (Holm) |", "|---|--:|--:|--:|"]
    for test in tests:
        mean, low, high = map(format_signed, (test.mean, test.low, test.high))
        lines.append(f"| {test.label} | {mean} | {low} … {high} | {format_p(test.p)} |")
    return "\n".join(lines)


def format_signed(value: float, digits: int = 3) -> str:
    """A difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def format_p(p: float) -> str:
    """A p-value as people write it."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def trends(rows: Mapping[str, tuple[Sequence[float], np.ndarray]]) -> tuple[list[PairedTest], str]:
    """For each row, whether values (draws, places) go up or down with x, by the rank correlation of each draw."""
    tests = []
    for label, (x, values) in rows.items():
        correlation = np.array(  # none where nothing varies, as where all silos fused
            [stats.spearmanr(x, of_draw).statistic if np.ptp(of_draw) else 0.0 for of_draw in values]
        )
        tests.append(compare(label, correlation, np.zeros_like(correlation)))
    tests = holm(tests)
    lines = [f"* {test.label}: {format_signed(test.mean, 2)} (p {format_p(test.p)})" for test in tests]
    return tests, "Mean rank correlation (Spearman) over draws, p after Holm:\n\n" + "\n".join(lines)


def verdict_of(parts: Sequence[bool], *, n_draws: int | None = None) -> Verdict:
    """Held if all parts did, in part if some; `n_draws` where it takes a test to tell."""
    if n_draws is not None and not can_tell(n_draws):
        return "too few draws"
    return "held" if all(parts) else "held in part" if any(parts) else "did not hold"


def markdown(claims: Sequence[Claim]) -> str:
    """Claims as sections, after a list of verdicts."""
    lines = ["| claim | verdict |", "|---|---|", *(f"| {claim.says} | **{claim.verdict}** |" for claim in claims), ""]
    for number, claim in enumerate(claims, start=1):
        lines += [f"### {number}. {claim.says}", "", f"**{claim.verdict.capitalize()}.** {claim.evidence}", ""]
    return "\n".join(lines)
