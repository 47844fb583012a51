"""What a site has spent, what it allows, and what openings show together.

Costs of openings with noise add up: ρ for each, and the ε that their sum amounts to (privacy/accounting.py). An opening
without noise has no such number: it is counted. The same opening, sent again, costs nothing more.

Two masked sums without noise over different sites show, by their difference, the sites that came or went. So a site
that has sent one sends none over others, unless its people say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from silograph.federation.refusals import Refused
from silograph.federation.site.openings import Opening, distinct
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile
from silograph.privacy.accounting import epsilon_of, multiplier_for, rho_for, rho_of
from silograph.privacy.settings import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What all openings cost together."""

    rho: float  # for one person; infinite once something was opened without noise
    noisy_rho: float  # of those with noise alone
    sums: int  # openings without noise

    def epsilon(self, delta: float) -> float:
        """What it amounts to."""
        return epsilon_of(self.rho, delta)


def spent_by(openings: Sequence[Opening]) -> Spent:
    """What these openings cost, each counted once."""
    once = distinct(openings)
    noisy = math.fsum(opening.person_rho for opening in once if opening.noisy)
    sums = sum(not opening.noisy for opening in once)
    return Spent(rho=math.inf if sums else noisy, noisy_rho=noisy, sums=sums)


def opening_of(study: StudyFile, version: str, cohort: Sequence[str], *, most: int = 1) -> Opening:
    """What a study opens of a version of the data, together with these sites."""
    privacy = study.settings.privacy
    return Opening(
        study=study.sha256,
        name=study.name,
        version=version,
        cohort=tuple(cohort),
        masked=privacy.masked,
        rho=cost_of(privacy),
        delta=privacy.delta,
        unit=privacy.unit,
        most=most if privacy.noisy else 1,
    )


@cache
def cost_of(privacy: Privacy) -> float:
    """ρ for one unit; asked in every round, and found by search."""
    if privacy.epsilon is None or privacy.delta is None:
        return math.inf
    return rho_of(multiplier_for(privacy.epsilon, privacy.delta))


def is_known(opening: Opening, earlier: Sequence[Opening]) -> bool:
    """Whether it was paid for: then the same bytes leave once more. Before noise is drawn, any draw may be meant."""
    same = [one for one in earlier if one.key[:3] == opening.key[:3] and opening.draw in ("", one.draw)]
    return any(one.person_rho >= opening.person_rho for one in same)


def check_opening(opening: Opening, earlier: Sequence[Opening], settings: SiteSettings, *, despite: bool) -> None:
    """Refuse what the site's limits do not allow; `despite`: people approved it although other sites took part."""
    if (objection := over_budget(opening, earlier, settings)) is not None:
        raise Refused("budget", objection)
    if not despite and (objection := other_cohort(opening, earlier)) is not None:
        raise Refused("cohort", f"{objection}; to answer all the same, approve it with --despite-difference")


def over_budget(opening: Opening, earlier: Sequence[Opening], settings: SiteSettings) -> str | None:
    """Which limit of site.toml this would exceed, and what to do about it."""
    total, most = settings.epsilon_total, settings.sums_total
    if total is not None and not opening.noisy:
        return f"the study has no epsilon; with epsilon_total = {total:g}, site.toml allows none without: ask for one"
    if is_known(opening, earlier):
        return None
    if total is not None:
        after = spent_by([*earlier, opening])
        if after.sums:
            return (
                f"openings without noise were made before ({after.sums}), so that no total epsilon can hold for these "
                f"data any more (epsilon_total = {total:g}): take it out of site.toml, knowingly, or take part with a "
                "folder for other people's data"
            )
    if opening.noisy:
        limit, delta = settings.noise_limit, settings.delta_total
        before, epsilon = (epsilon_of(spent_by(some).noisy_rho, delta) for some in (earlier, [*earlier, opening]))
        if epsilon > limit:
            allows = f"site.toml allows epsilon_total = {limit:g}"
            allows += " where it says nothing: above, noise hides nobody" * (total is None)
            spent = f"epsilon = {before:.4g} is spent, with this study it would be {epsilon:.4g} at delta = {delta:g}"
            return f"{spent}; {allows}: ask for a study with more noise, or raise the limit, knowingly"
    if most is not None and not opening.noisy and (sums := spent_by(earlier).sums) >= most:
        made = f"openings without noise were made before ({sums}); site.toml allows sums_total = {most}"
        return f"{made}: ask for a study with noise, or raise the limit, knowingly"
    return None


def other_cohort(opening: Opening, earlier: Sequence[Opening]) -> str | None:
    """Which sites the difference of this masked sum and an earlier one shows; without noise alone."""
    if opening.noisy or not opening.masked:
        return None
    for one in earlier:
        if one.masked and not one.noisy and set(one.cohort) != set(opening.cohort):
            return (
                f"a masked sum over {shown_cohort(one.cohort)} left before (study {one.name!r}), this one is over "
                f"{shown_cohort(opening.cohort)}, without noise: their difference shows the sites that came or went"
            )
    return None


def shown_by(opening: Opening, earlier: Sequence[Opening]) -> list[str]:
    """What an opening shows together with earlier ones, beyond itself, in words for those who approve it."""
    others = [one for one in distinct(earlier) if one.key[:3] != opening.key[:3]]
    told = [one for one in others if not one.noisy and not one.masked]
    masked = [one for one in others if not one.noisy and one.masked]
    cohort, said = set(opening.cohort), list[str]()
    if told and opening.masked:
        said.append(
            f"Your own numbers were told before, open and without noise ({_studies(told)}). As far as your data are "
            "the same, masks hide nothing of them, and hide the other sites less."
        )
    if masked and not opening.masked and not opening.noisy:
        said.append(
            f"You sent masked sums before ({_studies(masked)}). This study is open: with your own numbers, your term "
            "of these sums is known, and so is the sum of the others'."
        )
    if opening.masked and any(one.version != opening.version for one in masked):
        said.append(
            f"You sent masked sums of other versions of your data before ({_studies(masked)}). Where the other sites' "
            "data are as they were, the difference shows how your own numbers changed, as if they were told open."
        )
    if opening.masked and opening.noisy and any(one.masked and set(one.cohort) != cohort for one in others):
        said.append(
            "You sent masked sums over other sites before. The difference shows the terms of the sites that came or "
            f"went, but for the noise, and that hides a {opening.unit}, not a site."
        )
    if (noisy := [one for one in others if one.noisy]) and not opening.noisy:
        said.append(
            f"You sent sums with noise before ({_studies(noisy)}). This study has none: the epsilon promised then "
            "holds no more for what both tell."
        )
    if opening.noisy and (told or masked):
        said.append("Openings without noise were made before: the total epsilon is without bound, whatever this adds.")
    return said


def more_that_fit(epsilon: float, openings: Sequence[Opening], settings: SiteSettings, *, most: int = 1) -> int:
    """How many more studies at this ε, and δ as `delta_total`, the limit allows; `most`: units of one person."""
    assert settings.epsilon_total is not None
    if (spent := spent_by(openings)).sums:
        return 0
    rho = most**2 * cost_of(Privacy(epsilon=epsilon, delta=settings.delta_total))
    allowed = rho_for(settings.epsilon_total, settings.delta_total)
    # Noise is a trifle larger than needed, so that rounding takes none away
    return max(0, math.floor((allowed - spent.rho) / rho))


def shown_cohort(cohort: Sequence[str]) -> str:
    """The sites, by name."""
    return ", ".join(cohort) or "sites that nobody knows any more"


def _studies(openings: Sequence[Opening]) -> str:
    names = dict.fromkeys(repr(one.name) if one.name else one.study[:12] for one in openings)
    first = list(names)[:3]
    return ", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
