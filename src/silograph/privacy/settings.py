"""What a study says of privacy: whether sums are masked, how much noise they carry, and for whom it is meant."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from silograph._util.checks import check_positive, check_whole
from silograph.errors import ParameterError
from silograph.privacy.accounting import multiplier_for

MOST_DELTA = 0.01  # the chance that the promise fails: above one in the number of people it is none
LEAST_LENGTH, MOST_LENGTH = 1e-100, 1e100  # of a row: its square, and noise's steps of that, must be numbers
LEAST_MASKED_SITES = 3  # of two, each knows the other's term from the sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """The [privacy] of a study. Without ε there is no noise, and without masks the coordinator sees every term."""

    sums: Literal["open", "masked"] = "open"
    epsilon: float | None = None
    delta: float | None = None
    unit: Literal["row", "table"] = "row"  # what may be replaced without showing: a row, or a whole table (a person)
    rows: Literal["unit"] | float = "unit"  # each row is brought to length 1, or cut to this length at most
    collusion: int = 1  # sites that may tell the coordinator their share of the noise; each site knows its own
    min_samples: int | None = None  # rows that every table has at least, which everybody may know; for unit = "row"
    centres: tuple[float, ...] | None = None  # public, one per node: subtracted first
    scales: tuple[float, ...] | None = None  # public, one per node: then divided by

    def __post_init__(self) -> None:
        if self.sums not in ("open", "masked"):
            raise ParameterError(f"sums: expected 'open' or 'masked', got {self.sums!r}.")
        if self.unit not in ("row", "table"):
            raise ParameterError(f"unit: expected 'row' or 'table', got {self.unit!r}.")
        if self.rows != "unit":
            if isinstance(self.rows, str):
                raise ParameterError(f"rows: expected 'unit', or a number > 0 as the longest row, got {self.rows!r}.")
            check_positive("rows", self.rows)
            if not LEAST_LENGTH <= self.rows <= MOST_LENGTH:
                raise ParameterError(
                    f"rows: expected a length from {LEAST_LENGTH:g} to {MOST_LENGTH:g}, got {self.rows!r}. Give "
                    "scales, which rows are divided by first."
                )
        check_whole("collusion", self.collusion, least=1)
        if self.min_samples is not None:
            check_whole("min_samples", self.min_samples, least=2)
        self._check_budget()
        self._check_public()

    def _check_budget(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            given, lacks = ("epsilon", "delta") if self.delta is None else ("delta", "epsilon")
            raise ParameterError(f"{given}: needs {lacks} too, such as epsilon = 1 and delta = 1e-5.")
        if self.epsilon is None or self.delta is None:
            if self.min_samples is not None:  # by where sites refuse, it would tell how many rows each has
                raise ParameterError("min_samples: is for epsilon alone. Leave it out.")
            return
        check_positive("epsilon", self.epsilon)
        if not 0 < self.delta <= MOST_DELTA:
            raise ParameterError(
                f"delta: expected a number above 0 and up to {MOST_DELTA}, such as 1e-5, got {self.delta!r}: so likely "
                "may the promise fail."
            )
        multiplier_for(self.epsilon, self.delta)  # raises for an ε that no noise can be found for

    def _check_public(self) -> None:
        for name in ("centres", "scales"):
            values = getattr(self, name)
            if values is None:
                continue
            if not all(isfinite(value) and (name == "centres" or value > 0) for value in values):
                kind = "finite numbers" if name == "centres" else "numbers > 0"
                raise ParameterError(f"{name}: expected {kind}, one per node.")
        if (self.centres is None) != (self.scales is None):
            raise ParameterError("centres, scales: expected both or none: each node's public centre and scale.")

    @property
    def masked(self) -> bool:
        """Whether the coordinator gets the sum without its terms."""
        return self.sums == "masked"

    @property
    def noisy(self) -> bool:
        """Whether what leaves carries noise."""
        return self.epsilon is not None

    @property
    def longest_row(self) -> float:
        """The length that no row exceeds."""
        return 1.0 if self.rows == "unit" else float(self.rows)

    def check_sites(self, n_sites: int) -> None:
        """Raise where masks or shares of noise cannot protect so few sites."""
        if self.masked and n_sites < LEAST_MASKED_SITES:
            raise ParameterError(
                f"sums: masks need {LEAST_MASKED_SITES} sites at least, got {n_sites}: of two, each knows the other's "
                "term from the sum."
            )
        if self.masked and self.noisy and n_sites <= self.collusion:
            raise ParameterError(
                f"collusion: expected fewer than the number of sites ({n_sites}), got {self.collusion}: somebody's "
                "noise must stay unknown."
            )


OPEN = Privacy()
