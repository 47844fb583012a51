"""Attacks over several runs: two versions of a table, two cohorts, two studies, the same study again and again."""

import numpy as np

from silograph.audit.consortium import Consortium, Coordinator, made_consortium
from silograph.audit.findings import Finding, recovered
from silograph.audit.scene import Scene, costs_of
from silograph.audit.sites import MASKED, SITES, authority, open_sum, stopped, tables_of, total_of
from silograph.audit.statistics import relative_error
from silograph.federation.site.budget import Budget

NOISY = "epsilon = 1.0\ndelta = 1e-5\nmin_samples = 200"


def another_version(scene: Scene) -> list[Finding]:
    """A table with one row less than was answered for: the ledger of rows refuses, though all studies are approved."""
    tables = tables_of(scene)
    with made_consortium(tables, SITES, authority()) as consortium:
        open_sum(consortium, "")
        consortium.write(SITES[0], tables[0][:-1])
        consortium.restart()
        code = Coordinator(consortium, consortium.study(), SITES, masked=False).greet(SITES[0]).code
    return [stopped("ledger/version", "an open answer", "the same table with one row less", [code], by="unapproved")]


def called_missing(scene: Scene) -> list[Finding]:
    """A site that has sent is called missing, and a study of the others asked for: their ledgers refuse.

    The control is a consortium that has forgotten: the difference of the two sums is the site's term.
    """
    tables, rest = tables_of(scene), SITES[:-1]
    with made_consortium(tables, SITES, authority()) as consortium:
        whole = total_of(open_sum(consortium))
        again = _others(consortium, rest).open_sum()
    with made_consortium(tables, SITES, authority()) as forgetful:
        part = total_of(_others(forgetful, rest).open_sum())
    error = relative_error(whole - part, costs_of(tables[-1]))
    attack, codes = "call a site missing that has sent: a study of the others", [again.refused.get(one) for one in rest]
    return [
        stopped("ledger/cohort", "the sum over all sites", attack, codes, by="cohort"),
        recovered(
            "ledger/no-ledger", "sums over two cohorts", "the same where sites forget", error, most=1e-9, control=True
        ),
    ]


def _others(consortium: Consortium, rest: tuple[str, ...]) -> Coordinator:
    return Coordinator(consortium, consortium.study(privacy=MASKED, sites=rest), rest, masked=True)


def over_budget(scene: Scene) -> list[Finding]:
    """Two studies at ε = 1 where a site allows 1 in all: the second gets nothing, nor does one without noise."""
    with made_consortium(tables_of(scene), SITES, authority()) as consortium:
        consortium.limit(epsilon_total=1.0)
        first = open_sum(consortium, f"{MASKED}\n{NOISY}")
        later = [open_sum(consortium, f"{MASKED}\n{NOISY}\ncollusion = 2"), open_sum(consortium)]
    codes = [opened.refused.get(site) for opened in later for site in SITES]
    if first.refused:  # then the refusals after it prove nothing
        codes = ["the first study, too", *codes]
    holds = "a sum at ε = 1, which is all that sites allow"
    return [stopped("ledger/budget", holds, "a second study, with noise or without", codes, by="budget")]


def averaged(scene: Scene) -> list[Finding]:
    """The same study again and again: noise would average out if it were drawn anew."""
    with made_consortium(tables_of(scene), SITES, authority()) as consortium:
        sums = [total_of(open_sum(consortium, f"{MASKED}\n{NOISY}")) for _ in range(4)]
    different = sum(not np.array_equal(one, sums[0]) for one in sums)
    return [
        Finding(
            name="ledger/averaged",
            who="coordinator",
            holds="an approved study with noise",
            attack="run it again and again, and average",
            measure="different sums",
            measured=float(different),
            low=0.0,
            high=0.0,
            broken=different > 0,
            protected=True,
            trials=len(sums),
        )
    ]


def changed_elsewhere(scene: Scene) -> list[Finding]:
    """A patient of one site withdraws, and the study is run again.

    If the other sites used their noise again, it would cancel in the difference of the two sums, and one share alone
    would hide the patient.
    """
    tables = tables_of(scene)
    with made_consortium([np.vstack([tables[0], tables[0][:1]]), *tables[1:]], SITES, authority()) as consortium:
        open_sum(consortium, f"{MASKED}\n{NOISY}")
        consortium.write(SITES[0], tables[0])
        consortium.restart()
        open_sum(consortium, f"{MASKED}\n{NOISY}")
        draws = [[one.draw for one in Budget(consortium.folder / site).openings()] for site in SITES]
    again = sum(len(set(names)) < 2 for names in draws)
    return [
        Finding(
            name="ledger/changed",
            who="coordinator",
            holds="sums before and after one row left",
            attack="their difference",
            measure="shares of noise that cancel",
            measured=float(again),
            low=0.0,
            high=0.0,
            broken=again > 0,
            protected=True,
            trials=len(SITES),
        )
    ]
