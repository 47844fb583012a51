"""A site's two groups of patients: which tables they are, and the sums over their graphs.

No group is small, and neither are the tables that are in none: their sum is that of all less those of both groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silograph._util.types import Vector
from silograph.federation.groups import GROUP_FIELDS, LEAST_IN_GROUP, SIDES, group_units
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile
from silograph.protocol.messages import Header, Update, update_of
from silograph.protocol.sums import Subtotal, add_some

Members = tuple[int, ...]  # numbers of a site's tables, in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The sums per group that were told at the end of a run, once, and the digest of the request."""

    digest: str
    answer: Subtotal


def members_of(study: StudyFile, data: SiteData, settings: SiteSettings) -> tuple[Members, ...]:
    """The tables of both groups; nothing where the study asks for none. Refuses where a sum would be over few."""
    if study.groups is None:
        return ()
    if not data.several or data.labels is None:
        raise Refused("groups", f"{data.place}: the study compares groups; expected several tables, and [table] groups")
    least = settings.min_tables
    if least < LEAST_IN_GROUP:  # of differences with other answers, too
        raise Refused("groups", f"sums per group need min_tables of {LEAST_IN_GROUP} or more, site.toml has {least}")
    if unknown := data.labels.count(""):
        raise Refused("groups", f"{settings.groups}: expected a group for each table, but {unknown} have none")
    members = [tuple(k for k, label in enumerate(data.labels) if label == name) for name in study.groups]
    rest = tuple(k for k, label in enumerate(data.labels) if label not in study.groups)
    for name, some in zip((*study.groups, None), (*members, rest), strict=True):
        n_tables = len({data.known.sha256[str(data.tables[k].path)] for k in some})  # copies of one hide nobody
        if n_tables < least and (some or name is not None):
            which = "in neither group" if name is None else f"in group {name!r}"
            raise Refused("groups", f"{settings.groups}: different tables {which}: {n_tables}, the least is {least}")
    return tuple(members)


def sum_groups(
    header: Header, site: str, graphs: Sequence[Vector], members: Sequence[Members], scalars: Mapping[str, float]
) -> Subtotal:
    """How many are in each group, and Σw and Σw² over them: exact sums, as all others."""
    nothing = np.zeros_like(graphs[0])

    def terms(number: int, w: Vector) -> Update:
        parts: dict[str, Vector | float] = {}
        for side, some in zip(SIDES, members, strict=True):
            own = (1.0, w, w * w) if number in some else (0.0, nothing, nothing)
            parts |= dict(zip((f"count_{side}", f"sum_{side}", f"squares_{side}"), own, strict=True))
        return update_of(header, str(number), parts)

    updates = [terms(number, w) for number, w in enumerate(graphs)]
    return add_some(updates, GROUP_FIELDS, group_units(scalars), source=site)
