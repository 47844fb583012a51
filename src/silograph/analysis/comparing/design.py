"""Who belongs to which group, and what else may explain a difference: covariates and sites."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from silograph._util.checks import list_names
from silograph._util.naming import setting
from silograph._util.types import BoolVector, IntVector, Matrix, Vector
from silograph.errors import SilosError

FEWEST = 2  # silos of a group: one has no spread
NOTHING = 1e-8  # of a column's length: what is left of one that follows from the others
CURE = "Leave this covariate out."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Of each silo, in their order."""

    is_first: BoolVector  # whether it is of the first group
    site: IntVector  # silos change places within a site only; all 0: there is one
    covariates: Matrix  # (silos, columns), numbers

    @property
    def counts(self) -> tuple[int, int]:
        """Silos of either group."""
        first = int(self.is_first.sum())
        return first, self.is_first.size - first

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the group is known."""
        return self.covariates.shape[1] == 0 and not self.site.any()

    def of(self, kept: BoolVector) -> "Design":
        """The same of some silos."""
        return Design(is_first=self.is_first[kept], site=self.site[kept], covariates=self.covariates[kept])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bases:
    """The design as least squares needs it."""

    of_sites: Matrix  # orthonormal columns: the mean of each site
    of_covariates: Matrix  # orthonormal columns: what covariates say beyond it
    group: Vector  # what is left of the indicator of the first group
    freedom: int  # degrees of it that are left

    def residuals(self, y: Matrix) -> Matrix:
        """What sites and covariates leave of the columns."""
        for basis in (self.of_sites, self.of_covariates):
            y = y - basis @ (basis.T @ y)
        return y


def bases_of(design: Design) -> Bases | None:
    """The bases of a design; none where the group follows from the others, or no freedom is left."""
    sites = np.equal.outer(design.site, np.unique(design.site)).astype(np.float64)
    sites /= np.sqrt(sites.sum(axis=0))
    covariates = design.covariates - sites @ (sites.T @ design.covariates)
    length = np.linalg.norm(covariates, axis=0)
    covariates = covariates[:, length > NOTHING] / length[length > NOTHING]
    if covariates.shape[1]:
        q, r, _ = qr(covariates, mode="economic", pivoting=True)
        covariates = q[:, np.abs(np.diag(r)) > NOTHING]
    free = design.is_first.size - sites.shape[1] - covariates.shape[1] - 1
    indicator = design.is_first.astype(np.float64)
    bases = Bases(of_sites=sites, of_covariates=covariates, group=indicator, freedom=free)
    group = bases.residuals(indicator[:, None])[:, 0]
    if free < 1 or np.linalg.norm(group) <= NOTHING * np.linalg.norm(indicator):
        return None
    return Bases(of_sites=sites, of_covariates=covariates, group=group, freedom=free)


def make_design(
    silos: Sequence[str],
    groups: Sequence[str],
    first: str,
    *,
    covariates: Mapping[str, Sequence[str]] | None = None,
    sites: Sequence[str] | None = None,
) -> Design:
    """The design of silos that are of two groups; raises where it cannot tell the groups from the rest.

    A covariate whose values are all numbers counts as one; of any other, each value is a class.
    """
    is_first = np.array([group == first for group in groups], dtype=bool)
    _check_sizes(silos, groups, first)
    named = [""] * len(silos) if sites is None else sites
    site = np.unique(np.array(named), return_inverse=True)[1].astype(np.int32)
    design = Design(is_first=is_first, site=site, covariates=np.empty((len(silos), 0)))
    _check_told(design, first, "the sites", "Leave the sites out.")
    for name, values in (covariates or {}).items():
        columns = np.hstack([design.covariates, _columns(name, values, silos, site, design.covariates)])
        design = Design(is_first=is_first, site=site, covariates=columns)
        before = " beside the sites and covariates before it" if columns.shape[1] > 1 or site.any() else ""
        _check_told(design, first, f"covariate {name!r}{before}", CURE)
    return design


def _check_told(design: Design, first: str, by: str, cure: str) -> None:
    if bases_of(design) is None:
        raise SilosError(
            f"Expected groups that sites and covariates do not tell already, but who belongs to {first!r} follows from "
            f"{by}, or too few silos are left to compare. {cure}"
        )


def _check_sizes(silos: Sequence[str], groups: Sequence[str], first: str) -> None:
    for group in dict.fromkeys((first, *groups)):
        members = [silo for silo, its in zip(silos, groups, strict=True) if its == group]
        if len(members) < FEWEST:
            raise SilosError(
                f"Group {group!r}: expected {FEWEST} silos or more, got {len(members)} ({list_names(members)}). One "
                "silo has no spread to compare with."
            )


def _columns(name: str, values: Sequence[str], silos: Sequence[str], site: IntVector, before: Matrix) -> Matrix:
    """The columns of a covariate, centred and of length 1."""
    gaps = [silo for silo, value in zip(silos, values, strict=True) if is_gap(value)]
    if gaps:
        raise SilosError(
            f"Covariate {name!r}: expected a value for each silo, but {len(gaps)} have none ({list_names(gaps)}). "
            f"{meant_by_gaps(values)}Fill them in, or leave these silos out: empty their cell in the column of groups, "
            f"and name both groups ({setting('between')})."
        )
    numbers = _numbers(name, values, silos)
    if numbers is None:
        kinds = sorted(set(values))
        numbers = np.array([[value == kind for kind in kinds[1:]] for value in values], dtype=np.float64)
    if numbers.shape[1] == 0 or not np.ptp(numbers, axis=0).any():
        raise SilosError(f"Covariate {name!r}: is the same for all silos, so that it explains nothing. {CURE}")
    if numbers.shape[1] > len(silos) - 4:
        few = f"is too much for {len(silos)} silos" if numbers.shape[1] == 1 else "has almost as many classes as silos"
        raise SilosError(f"Covariate {name!r}: {few}. {CURE}")
    # By a power of two, which changes no other bit: the squares of very large and small numbers are none
    scaled: Matrix = np.ldexp(numbers, -np.frexp(np.abs(numbers).max(axis=0))[1])
    scaled -= scaled.mean(axis=0)
    scaled /= np.linalg.norm(scaled, axis=0)
    sites = np.equal.outer(site, np.unique(site)).astype(np.float64)
    known = np.hstack([sites, before])
    if (
        np.linalg.matrix_rank(np.hstack([known, scaled]), tol=NOTHING)
        < np.linalg.matrix_rank(known, tol=NOTHING) + scaled.shape[1]
    ):
        raise SilosError(f"Covariate {name!r}: follows from the sites and covariates before it. {CURE}")
    return scaled


def _numbers(name: str, values: Sequence[str], silos: Sequence[str]) -> Matrix | None:
    """Of a covariate that is a number; of words, nothing. Both are an error: numbers would be taken for classes."""
    numbers = [_number(value) for value in values]
    strange = [place for place, number in enumerate(numbers) if number is None]
    meant = [place for place in strange if _number(values[place].replace(",", ".")) is not None]
    if meant or 0 < len(strange) < len(values):
        place = meant[0] if meant else strange[0]
        raise SilosError(
            f"Covariate {name!r}, silo {silos[place]!r}: expected a number as in other rows, got {values[place]!r}. "
            "Correct it (1.5, not 1,5), or write words only where classes are meant."
        )
    return None if strange else np.array(numbers, dtype=np.float64)[:, None]


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def meant_by_gaps(values: Sequence[str]) -> str:
    """Which words in these cells are taken for gaps, if a reader may have meant something by them."""
    words = sorted({value for value in values if value and is_gap(value)})
    return f"A cell that says {list_names(words)} counts as empty. " if words else ""


def is_gap(value: str) -> bool:
    """Whether a cell says that nothing is known; ABIDE and other tables write -9999."""
    return value.strip().lower() in ("", "n/a", "#n/a", "na", "nan", "none", "null", "-999", "-9999", "-9999.0")
