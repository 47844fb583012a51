"""Refusals as an oracle: what a site tells by not answering, with no number sent at all."""

import numpy as np

from silograph._util.types import Matrix, Vector
from silograph.audit.consortium import Coordinator, made_consortium
from silograph.audit.findings import Finding, recovered
from silograph.audit.ledgers import NOISY
from silograph.audit.scene import PAIRS, Scene, costs_of
from silograph.audit.sites import MASKED, SITES, authority, stopped, tables_of
from silograph.data.bounded import RowBounds
from silograph.data.pairwise import moments_of
from silograph.errors import ParameterError
from silograph.federation.study_file import parse_study

BISECTIONS = 40


def ranges(scene: Scene) -> list[Finding]:
    """A site's mean squared difference, from nothing but whether it refuses ranges; with noise there are none."""
    tables = tables_of(scene)
    truth = float(costs_of(tables[0]).mean())
    low, high = 1e-3, 1e3
    with made_consortium(tables, SITES, authority()) as consortium:
        for _ in range(BISECTIONS):
            middle = float(np.sqrt(low * high))
            study = consortium.study(top=f"scale = [{low!r}, {middle!r}]")
            refused = Coordinator(consortium, study, SITES, masked=False).greet(SITES[0]).code == "scale"
            low, high = (middle, high) if refused else (low, middle)
        noisy = consortium.study(top="scale = [1.0, 2.0]", privacy=NOISY)
    error = abs(float(np.sqrt(low * high)) / truth - 1)
    return [
        recovered("refusals/ranges", "refusals, no noise", "the mean difference, by ranges", error, most=1e-6),
        stopped("refusals/no-ranges", "refusals, with noise", "the same with noise", [_objection(noisy)], by="scale"),
    ]


def _objection(study: str) -> str | None:
    """What a study is refused for."""
    try:
        parse_study(study.encode(), source="study")
    except ParameterError as error:
        return "scale" if str(error).startswith("study, scale:") else str(error)
    return None


def false_sums(scene: Scene) -> list[Finding]:
    """Sums that no sites have, sent down to a site with noise in its study: what it says may not depend on its data."""
    tables = tables_of(scene)
    own = moments_of(tables[0], PAIRS, RowBounds()).costs()
    lies = (np.zeros(PAIRS.size), 0.999 * own, 1.001 * own, 1e-300 * own, np.full(PAIRS.size, 1e30))
    worlds = [_codes([first, *tables[1:]], lies) for first in (tables[0], -1e3 * tables[0][::-1, ::-1])]
    differ = sum(one != other for one, other in zip(*worlds, strict=True))
    return [
        Finding(
            name="refusals/false-sums",
            who="coordinator",
            holds="a study with noise",
            attack="send down sums that are none, and see which it refuses",
            measure="refusals that differ between two tables",
            measured=float(differ),
            low=0.0,
            high=0.0,
            broken=differ > 0,
            protected=True,
            trials=len(lies),
            note=f"said: {', '.join(sorted({code or 'an answer' for code in worlds[0]}))}",
        )
    ]


def _codes(tables: list[Matrix], lies: tuple[Vector, ...]) -> list[str | None]:
    """What the first site says to each of these sums, each in a run of its own."""
    found = []
    with made_consortium(tables, SITES, authority()) as consortium:
        study = consortium.study(privacy=f"{MASKED}\n{NOISY}").replace("pull = 1.0\n", "")  # it chooses by its rows
        for lie in lies:
            coordinator = Coordinator(consortium, study, SITES, masked=True)
            coordinator.open_sum()
            found.append(coordinator.send_sum(SITES[0], lie).code)
    return found
