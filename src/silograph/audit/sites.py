"""Attacks by a coordinator on real sites, through their services, with certificates of its own making.

Every site approves every study here (`approve_all`), so that what stops an attack is code and not people.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from silograph._util.types import Matrix, Vector
from silograph.audit.consortium import Authority, Consortium, Coordinator, Opened, made_consortium
from silograph.audit.findings import Finding, recovered
from silograph.audit.scene import PAIRS, Scene, added, costs_of, from_ring
from silograph.audit.statistics import relative_error
from silograph.federation.identity import Signer, public_key_fingerprint
from silograph.federation.keys import KeyStatement, Terms, sign_statement
from silograph.federation.study_file import parse_study

SITES = ("kyoto", "lima", "oslo", "quito")
MASKED = 'sums = "masked"'


@cache
def authority() -> Authority:
    """One for all attacks: keys take long to make."""
    return Authority()


def tables_of(scene: Scene) -> list[Matrix]:
    """A table for each site here, however many the study has."""
    return scene.tables(len(SITES))


def open_sum(consortium: Consortium, privacy: str = MASKED, **study: str) -> Opened:
    """What a coordinator gets by a study with all sites."""
    text = consortium.study(privacy=privacy, **study)
    return Coordinator(consortium, text, consortium.sites, masked=MASKED in privacy).open_sum()


def total_of(opened: Opened) -> Vector:
    """The sum that the terms give."""
    return from_ring(added(list(opened.terms.values())))


def read_answers(scene: Scene) -> list[Finding]:
    """What the bytes of an answer tell: open, everything; masked, nothing but the sum."""
    tables = tables_of(scene)
    with made_consortium(tables, SITES, authority()) as consortium:
        bare, hidden = open_sum(consortium, ""), open_sum(consortium)
    truth = [costs_of(table) for table in tables]
    seen, masked = (relative_error(from_ring(opened.terms["kyoto"]), truth[0]) for opened in (bare, hidden))
    total = relative_error(total_of(hidden), np.sum(truth, axis=0))
    return [
        recovered("sites/open", "one open answer of a site", "read the site's z/N", seen),
        Finding(
            name="sites/masked",
            who="coordinator",
            holds="one masked answer of a site",
            attack="read the site's z/N",
            measure="relative error",
            measured=masked,
            low=1e6,  # 192 random bits come nearer than that with a probability of about 2⁻⁸⁰
            broken=masked < 1e6,
            protected=True,
        ),
        recovered("sites/sum", "all masked answers", "the sum", total),
    ]


def second_certificate(scene: Scene) -> list[Finding]:
    """A second "oslo" that the coordinator certifies: in a study of its own, and in the keys of an honest one."""
    false = authority().new_signer("oslo")
    others = [site for site in SITES if site != "oslo"]
    with made_consortium(tables_of(scene), SITES, authority()) as consortium:
        study = consortium.study(privacy=MASKED, oslo=public_key_fingerprint(false.certificate))
        coordinator = Coordinator(consortium, study, SITES, masked=True)
        named = [coordinator.greet(site).code for site in others]
        refused = _refusing(consortium, false)
    return [
        stopped("sites/second-key", "the root key", "a study with a second oslo of its own", named, by="pins"),
        stopped(
            "sites/swapped-key",
            "the root key",
            "a run's key signed by a second oslo",
            [refused.get(site) for site in others],
            by="pins",
        ),
    ]


def _refusing(consortium: Consortium, false: Signer) -> dict[str, str]:
    """Which sites refuse keys among which oslo's was signed by somebody else of that name."""
    text = consortium.study(privacy=MASKED)
    coordinator = Coordinator(consortium, text, SITES, masked=True)
    for site in SITES:
        coordinator.greet(site)
    study = parse_study(text.encode(), source="study")
    terms = Terms.of(study, coordinator.run, SITES, consortium.nodes, PAIRS.size)
    key = X25519PrivateKey.generate().public_key().public_bytes_raw()
    statement = sign_statement(KeyStatement(site="oslo", key=key, least=2), terms, false)
    return coordinator.exchange_keys({"oslo": statement})


def other_rosters(scene: Scene) -> list[Finding]:
    """A masked study, run with fewer sites than it names, or with others' places exchanged."""
    rosters = [SITES[:3], (SITES[1], SITES[0], *SITES[2:])]
    with made_consortium(tables_of(scene), SITES, authority()) as consortium:
        study = consortium.study(privacy=MASKED)
        coordinators = [Coordinator(consortium, study, roster, masked=True) for roster in rosters]
        codes = [one.greet(site).code for one in coordinators for site in one.sites]
    return [
        stopped("sites/roster", "an approved study", "run it with fewer sites, or in another order", codes, by="sites")
    ]


def after_restart(scene: Scene) -> list[Finding]:
    """Sites that were started anew: the same bytes again, or nothing; never the same masks on something else."""
    with made_consortium(tables_of(scene), SITES, authority()) as consortium:
        coordinator = Coordinator(consortium, consortium.study(privacy=MASKED), SITES, masked=True)
        coordinator.open_sum()
        before = coordinator.ask_costs("oslo").body
        consortium.restart()
        coordinator.greet("oslo")
        again = coordinator.ask_costs("oslo")
        other = Coordinator(consortium, consortium.study(privacy=MASKED), SITES, masked=True)
        for site in SITES:
            other.greet(site)
        other.exchange_keys()
        consortium.restart()  # before anything was masked: keys are gone
        other.greet("oslo")
        lost = other.ask_costs("oslo")
    kept = "keys" if again.body == before else None  # the very bytes that were sent are no second answer
    attack = "another answer under the same keys, after a restart"
    return [stopped("sites/restart", "a masked answer", attack, [kept, lost.code], by="keys")]


def lonely_pair(scene: Scene) -> list[Finding]:
    """A pair of nodes that one site alone has: open, the sum is that site's own; masked, it is left out."""
    tables = tables_of(scene)
    lacks = {"kyoto": (0,), "lima": (1,), "quito": (0, 1)}  # nodes 0 and 1 are together at oslo alone
    with made_consortium(tables, SITES, authority()) as consortium:
        for site, table in zip(SITES, tables, strict=True):
            consortium.write(site, table, lacks=lacks.get(site, ()))
        top = 'missing_nodes = "allow"'
        bare, hidden = open_sum(consortium, "", top=top), open_sum(consortium, top=top)
    truth = costs_of(tables[SITES.index("oslo")])[:1]
    shown = total_of(hidden)[:1]
    return [
        recovered(
            "sites/lonely-open",
            "the open sum",
            "a pair that one site alone has",
            relative_error(total_of(bare)[:1], truth),
        ),
        Finding(
            name="sites/lonely-masked",
            who="coordinator, other sites",
            holds="the masked sum",
            attack="a pair that one site alone has",
            measure="what the sum has there",
            measured=float(np.abs(shown).max()),
            low=0.0,
            high=0.0,
            broken=bool(shown.any()),
            protected=True,
        ),
    ]


def stopped(name: str, holds: str, attack: str, codes: Sequence[str | None], *, by: str) -> Finding:
    """An attack that is claimed to be refused, each time for this reason; None is an answer."""
    return Finding(
        name=name,
        who="coordinator",
        holds=holds,
        attack=attack,
        measure="tries not refused",
        measured=float(sum(code != by for code in codes)),
        low=0.0,
        high=0.0,
        broken=None in codes,
        protected=True,
        trials=len(codes),
        note=f"refused: {', '.join(sorted({code or 'no' for code in codes}))}",
    )
