"""What `silograph site budget` shows: what this site has opened of its data, what that amounts to, and what is left."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from silograph._util.terminal import visible
from silograph.cli.output import PIPE_WIDTH
from silograph.cli.site.account import say
from silograph.errors import SilographError
from silograph.federation.refusals import Refused
from silograph.federation.site.budget import Budget
from silograph.federation.site.openings import Line, Opening, plain_opening
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.spending import is_known, more_that_fit, shown_by, shown_cohort, spent_by
from silograph.privacy.accounting import epsilon_of

TRIED = (1.0, 0.5, 0.25, 0.1)  # ε of studies of which it is told how many more fit
COLUMNS = ("study", "time (UTC)", "sites", "sums", "unit", "ε", "at δ", "ρ", "ρ of a person")


def show_budget(home: Path, *, as_json: bool) -> None:
    """Print what is spent and left, for people or for machines."""
    settings, lines = read_site(home), read_lines(home)
    if as_json:
        typer.echo(json.dumps(budget_record(lines, settings), indent=2))
        return
    if lines:
        Console(width=None if Console().is_terminal else PIPE_WIDTH).print(budget_table(lines))
    say(*summary([line.opening for line in lines], settings))


def read_lines(home: Path) -> list[Line]:
    """The openings, or an error that says what to do."""
    try:
        return Budget(home).lines()
    except Refused as refusal:
        cure = "The site refuses every study. Find out why, then go on with `silograph site restored`."
        raise SilographError(f"{refusal.detail}. {cure}") from refusal


def budget_table(lines: Sequence[Line]) -> Table:
    """The openings for people."""
    table = Table(title=None)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", justify="right" if name in COLUMNS[5:] else "left")
    for line in lines:
        one = line.opening
        cells = (
            one.name or one.study[:12],
            line.time[:19].replace("T", " "),
            shown_cohort(one.cohort) if one.cohort else "unknown",
            "masked" if one.masked else "open",
            one.unit if one.most == 1 else f"{one.unit}, {one.most} of one person",
            _number(one.epsilon),
            "" if one.delta is None else f"{one.delta:g}",
            _number(one.rho),
            _number(one.person_rho),
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def summary(openings: Sequence[Opening], settings: SiteSettings) -> list[str]:
    """Spent, limit and left, in plain words."""
    spent, delta = spent_by(openings), settings.delta_total
    if not openings:
        lines = ["Nothing of these data was opened yet."]
    elif spent.sums:
        told = "What was told so is told as it is: no epsilon bounds what it shows of a person."
        lines = [f"Spent: {_times(spent.sums, 'opening')} without noise. {told}"]
        if spent.noisy_rho:
            lines += [f"Those with noise alone amount to {_amount(spent.noisy_rho, delta)}."]
    else:
        lines = [f"Spent: {_amount(spent.rho, delta)}, over all versions of the data and all studies."]
        lines += [_meaning(spent.epsilon(delta), delta, settings)]
    return [*lines, *_left(openings, settings)]


def _meaning(epsilon: float, delta: float, settings: SiteSettings) -> str:
    whose = "one person's data" if settings.person is not None else "one row (or table, where a study says so)"
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 20 else f"e to the {epsilon:.3g}, which protects nobody"
    return (
        f"That is: whoever sees all that was opened, the odds of any guess about {whose} change by a factor of at most "
        f"{factor}, but for a chance of {delta:g}."
    )


def _left(openings: Sequence[Opening], settings: SiteSettings) -> list[str]:
    total, sums = settings.epsilon_total, settings.sums_total
    lines = []
    if total is None:
        lines += [f"Limit: epsilon = {settings.noise_limit:g} for studies with noise (epsilon_total is not given)."]
    else:
        lines += [
            f"Limit: epsilon_total = {total:g} at delta = {settings.delta_total:g}; studies without noise are refused."
        ]
        most = openings[-1].most if openings else 1
        tried = [each for each in TRIED if each <= total] or [total]
        lines += [_more(tried, [more_that_fit(each, openings, settings, most=most) for each in tried], most)]
    if sums is not None:
        left = max(0, sums - spent_by(openings).sums)
        lines += [f"Limit: sums_total = {sums} without noise. Left: {left if total is None else 0}."]
    elif total is None:
        lines += ["Limit: none on openings without noise (sums_total in site.toml)."]
    return lines


def _more(tried: Sequence[float], fits: Sequence[int], most: int) -> str:
    """How many studies fit still, by their ε."""
    of_one = f", at {most} units of one person" if most > 1 else ""
    if not any(fits):
        return f"Left: no study, not even one at epsilon = {tried[-1]:g}{of_one}."
    first = f"{_times(fits[0], 'more study', 'more studies')} at epsilon = {tried[0]:g}"
    others = [f"{number} at {each:g}" for each, number in zip(tried[1:], fits[1:], strict=True)]
    return f"Left: {', or '.join((first, *others))}{of_one}."


def budget_record(lines: Sequence[Line], settings: SiteSettings) -> dict[str, Any]:
    """The same for machines; what is without bound is "inf"."""
    openings = [line.opening for line in lines]
    spent, total = spent_by(openings), settings.epsilon_total
    left = None if total is None else {f"{each:g}": more_that_fit(each, openings, settings) for each in TRIED}
    return {
        "format": 1,
        "openings": [
            {"number": line.number, "time": line.time, **plain_opening(line.opening)}
            | {"epsilon": _finite(line.opening.epsilon), "person_rho": _finite(line.opening.person_rho)}
            for line in lines
        ],
        "spent": {
            "rho": _finite(spent.rho),
            "epsilon": _finite(spent.epsilon(settings.delta_total)),
            "delta": settings.delta_total,
            "without_noise": spent.sums,
        },
        "limits": {
            "epsilon_total": total,
            "delta_total": settings.delta_total,
            "sums_total": settings.sums_total,
            "min_sites": settings.min_sites,
        },
        "left": {"studies_at_epsilon": left, "without_noise": _sums_left(spent.sums, settings)},
    }


def _sums_left(used: int, settings: SiteSettings) -> int | None:
    if settings.epsilon_total is not None:
        return 0
    return None if settings.sums_total is None else max(0, settings.sums_total - used)


# --- what a study would spend -----------------------------------------------------------------------------------------


def would_spend(opening: Opening, earlier: Sequence[Opening], settings: SiteSettings) -> list[str]:
    """For those who approve a study: what it costs, what is left then, and what it shows together with earlier ones."""
    delta = settings.delta_total
    if opening.noisy:
        cost = f"epsilon = {opening.epsilon:.4g}, delta = {opening.delta:g} for one {opening.unit}"
        cost += f" (rho = {opening.rho:.4g})"
        if opening.most > 1:
            cost += f"; one person has up to {opening.most} {opening.unit}s here: {_amount(opening.person_rho, delta)}"
        elif settings.person is None:
            cost += f". Whoever has several {opening.unit}s is protected less: name persons ([table] person)"
    else:
        told = "the sum" if opening.masked else "what leaves"
        cost = f"no noise: {told} is told as it is, and no epsilon bounds what it shows"
    lines = [f"Spends: {cost}."]
    if is_known(opening, earlier):
        lines = ["Spends: nothing more. The same study was opened before, on this version, with these sites."]
    after = summary([*earlier, opening], settings)
    return [*lines, *shown_by(opening, earlier), "And then:", *(f"  {line}" for line in after)]


def _amount(rho: float, delta: float) -> str:
    return f"epsilon = {_number(epsilon_of(rho, delta))} at delta = {delta:g} (rho = {_number(rho)})"


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "no noise"


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _times(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
