"""Two groups of patients: what a study may ask of them, and what sites send, sums over each group's graphs.

A site with many patients knows who is of which group, and tells neither that nor a graph. Per group it sends how many
they are, and for each pair of nodes Σw and Σw² over them: enough for means and variances, and so for Welch's test.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from silograph.errors import ParameterError, ProtocolError
from silograph.federation.names import names_of
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.protocol.fixed import FRACTION_BITS
from silograph.protocol.messages import FLAG, WEIGHTS, Field, Header, Parts
from silograph.protocol.units import Units, units_of

SIDES = ("first", "second")
SQUARES = Field("pairs", "weight²", nonnegative=True)
GROUP_FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        f"{name}_{side}": field
        for side in SIDES
        for name, field in (("count", FLAG), ("sum", WEIGHTS), ("squares", SQUARES))
    }
)
LEAST_IN_GROUP = 3  # of two numbers, their sum and that of their squares tell both
SLACK = 1e-9  # relative, of sums that were rounded


def groups_of_study(value: object, settings: StudySettings) -> tuple[str, str]:
    """The two groups that a study compares; raises where the rest of the study does not allow it."""
    names = names_of(value, "groups", least=2)
    if len(names) != 2:
        raise ParameterError(f'groups: expected two names, got {len(names)}. Write ["patient", "control"].')
    if (objection := _objection(settings)) is not None:
        raise ParameterError(f"groups: {objection}")
    return names[0], names[1]


def _objection(settings: StudySettings) -> str | None:
    privacy = settings.privacy
    if privacy.masked:
        return (
            "sums per group leave each site as they are, beside the masks that are to hide its term. Leave groups out, "
            'or take sums = "open".'
        )
    if privacy.noisy:
        return "sums per group leave each site without noise, which epsilon rules out. Leave groups or epsilon out."
    if settings.may_lack_nodes:
        return (
            "at a pair of nodes that few patients have, the sum over a group is over these few. Leave missing_nodes "
            "out, and drop the nodes that some lack."
        )
    if not spec_of(settings.method).own_graphs or settings.by_gradient or not settings.solver_used.certified:
        return (
            f"need every patient's graph as an exact optimum, which {settings.method!r} does not give as the study has "
            'it. Use the method "exact", "independent" or "oneshot", without gradient steps.'
        )
    return None


def group_units(scalars: Mapping[str, float]) -> Units:
    """What sums per group are counted in, by what set-up found: the same on all sides."""
    return units_of(alpha=scalars["alpha"], quadratic=4 * scalars["beta"])


def square_step(scalars: Mapping[str, float]) -> float:
    """To which the square of a weight is rounded as it is added."""
    return float(2.0 ** (group_units(scalars).exponents["weight²"] - FRACTION_BITS))


def check_group_sums(parts: Parts, header: Header, source: str, *, n_silos: int, units: Units) -> None:
    """Raise for sums that no graphs have: of more of them than there are, or with Σw² below (Σw)²/n."""
    place = f"{source}, {header.step}"
    counts = [float(parts[f"count_{side}"]) for side in SIDES]
    if min(counts) < LEAST_IN_GROUP or sum(counts) > n_silos:
        raise ProtocolError(f"{place}: expected two groups among {n_silos} silos, got {counts[0]:g} and {counts[1]:g}.")
    for side, count in zip(SIDES, counts, strict=True):
        total, squares = (np.asarray(parts[f"{name}_{side}"]) for name in ("sum", "squares"))
        off = count * SLACK * 2.0 ** units.exponents["weight²"]  # squares of small weights are rounded away
        least, most = total * total / count, total * total
        if (least > squares * (1 + SLACK) + off).any() or (squares > most * (1 + SLACK) + off).any():
            raise ProtocolError(f"{place}: expected sums and sums of squares of weights ≥ 0, got others.")
