"""What an attack found, beside what we claim.

A finding is as claimed if what is unprotected was broken, what is protected was not, and the number measured lies
where theory puts it. A control is a protection that was taken out on purpose: an attack that does not break it would
not notice when the real one fails.
"""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from silograph.audit.statistics import variance_bounds

Verdict = Literal["broken", "holds"]
EXACT = 1e-12  # relative; what is recovered to this is recovered


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One attack and how it ended."""

    name: str  # family and attack
    who: str
    holds: str  # what they have to begin with
    attack: str
    measure: str  # what was measured: an error, an advantage, how often
    measured: float
    low: float = -inf  # between these it should lie, if the attack ends as we claim
    high: float = inf
    broken: bool
    protected: bool  # what we claim
    control: bool = False
    trials: int = 1
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        return "broken" if self.broken else "holds"

    @property
    def as_claimed(self) -> bool:
        """Whether that is what we say, and the number is the one that theory gives."""
        return self.broken is not self.protected and self.low <= self.measured <= self.high

    @property
    def expected(self) -> str:
        """The range in words."""
        if self.low == self.high:
            return f"{self.low:.3g}"
        if self.low in (-inf, 0.0):
            return f"≤ {self.high:.3g}"
        return f"≥ {self.low:.3g}" if self.high == inf else f"{self.low:.3g} … {self.high:.3g}"

    def plain(self) -> dict[str, Any]:
        """As JSON has it, which knows no infinity."""
        found = asdict(self) | {"verdict": self.verdict, "as_claimed": self.as_claimed}
        return {key: None if value in (inf, -inf) else value for key, value in found.items()}


def recovered(
    name: str,
    holds: str,
    attack: str,
    error: float,
    *,
    who: str = "coordinator",
    most: float = EXACT,
    control: bool = False,
    note: str = "",
) -> Finding:
    """Numbers that an attack is known to get back, and how exactly."""
    return Finding(
        name=name,
        who=who,
        holds=holds,
        attack=attack,
        measure="relative error",
        measured=error,
        low=0.0,
        high=most,
        broken=error <= most,
        protected=False,
        control=control,
        note=note,
    )


def too_small(name: str, holds: str, attack: str, measure: str, square: float, *, trials: int, numbers: int) -> Finding:
    """A variance, in units of what it should be, over so many trials of so many independent numbers."""
    low, high = variance_bounds(trials * numbers)
    return Finding(
        name=name,
        who="coordinator",
        holds=holds,
        attack=attack,
        measure=measure,
        measured=square,
        low=low,
        high=high,
        broken=square < low,
        protected=True,
        trials=trials,
    )
