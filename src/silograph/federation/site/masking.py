"""A masked sum at a site: its key for one run, the others' keys, and its answer under masks that cancel in the sum.

Keys live in this process alone. Once it has ended they are gone, and with them the masks: what was answered is on disk
as it left, anything else needs a new generation of the run with new keys of all (refusal "keys"). So no mask ever hides
two different answers.
"""

from dataclasses import replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from silograph._util.types import BoolVector
from silograph.errors import ProtocolError, SilographError
from silograph.federation.identity import Signer, Trust
from silograph.federation.keys import (
    KeyStatement,
    Terms,
    WrongKeyError,
    pack_pairs,
    read_statement,
    shown_pairs,
    sign_statement,
    split_statements,
    together_of,
    transcript_of,
)
from silograph.federation.refusals import Refused
from silograph.federation.site.pins import Pins
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.privacy.masks import Masker, shared_secret
from silograph.protocol.fixed import limbs_of, whole_numbers
from silograph.protocol.silo import Silo
from silograph.protocol.sums import Subtotal


class Masking:
    """One run's keys at one site, in memory."""

    def __init__(
        self, terms: Terms, *, site: str, least: int, has: BoolVector | None, signer: Signer, data: bytes = b""
    ) -> None:
        self._terms, self._site = terms, site
        self._private = X25519PrivateKey.generate()
        public = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        packed = None if has is None else pack_pairs(has)
        own = KeyStatement(site=site, key=public, least=least, has=packed, data=data)
        self.statement = sign_statement(own, terms, signer)
        self.shown: BoolVector | None = None  # the pairs that enough sites have; None: all
        self.together = ""  # a name for all sites' data, for which noise is drawn
        self._accepted: bytes | None = None  # all sites' statements
        self._masker: Masker | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the others' keys are here."""
        return self._masker is not None

    def accept(self, statements: bytes, trust: Trust) -> None:
        """Take all sites' statements, once; refuses those of which a single one is not as it must be."""
        if self._accepted is not None:
            if statements != self._accepted:
                raise Refused("conflict", f"run {self._terms.run}: other keys were accepted before")
            return
        signed = split_statements(statements, self._terms)
        if signed[self._terms.roster.index(self._site)] != self.statement:
            raise Refused("keys", f"run {self._terms.run}: what was sent as this site's key is not the one in use")
        try:
            read = [
                read_statement(one, site, self._terms, trust)
                for site, one in zip(self._terms.roster, signed, strict=True)
            ]
        except WrongKeyError as error:
            raise Refused("pins", str(error)) from error
        except ProtocolError as error:
            raise Refused("malformed", str(error)) from error
        secrets = {other.site: shared_secret(self._private, other.key) for other in read if other.site != self._site}
        self._masker = Masker(name=self._site, secrets=secrets, transcript=transcript_of(signed))
        self.shown = shown_pairs(read, self._terms.n_pairs)
        self.together = together_of([one.data for one in read])
        self._accepted = statements

    def mask(self, total: Subtotal, *, stage: str, digest: str) -> Subtotal:
        """The site's sum under its masks; the digest is of the whole request that it answers."""
        assert self._masker is not None
        limbs = {name: limbs_of(part) if isinstance(part, int) else part for name, part in total.parts.items()}
        masked = self._masker.mask(limbs, task=bytes.fromhex(digest), stage=stage, round=total.header.round)
        parts = {
            name: whole_numbers(masked[name])[0] if isinstance(part, int) else masked[name]
            for name, part in total.parts.items()
        }
        return replace(total, parts=parts, reported={})


def check_pins(study: StudyFile, pins: Pins, *, site: str, fingerprint: str) -> None:
    """Refuse a study that names another key for a site than this site's people pinned; its own counts as pinned."""
    try:
        known = {**pins.all(), site: fingerprint}
    except SilographError as error:  # a damaged file
        raise Refused("pins", str(error)) from error
    for other, named in study.keys.items():
        if other not in known:
            raise Refused("pins", f"{other}: nobody has pinned its key here; the study names {named}")
        if known[other] != named:
            raise Refused("pins", f"{other}: {known[other]} is pinned here, the study names {named}")


def restrict(silo: Silo, shown: BoolVector) -> Silo:
    """The silo without the pairs that too few sites have, and without nodes that then have none.

    Left out at home as well: what a silo takes out of the sum is what it put in.
    """
    whole = silo.study_pairs
    before = np.arange(whole.size, dtype=np.int32) if silo.place is None else silo.place
    kept = np.flatnonzero(shown[before]).astype(np.int32)
    if kept.size == before.size:
        return silo
    place = before[kept]
    rows, cols = whole.at(place)
    nodes = np.unique(np.concatenate([rows, cols])).astype(np.int32)
    number = np.zeros(whole.n_nodes, dtype=np.int32)
    number[nodes] = np.arange(nodes.size, dtype=np.int32)
    return replace(
        silo,
        pairs=Pairs.from_sorted(nodes.size, number[rows], number[cols]),
        cost=silo.cost[kept],
        blocks=None if silo.blocks is None else silo.blocks.at(kept),
        nodes=None if nodes.size == whole.n_nodes else nodes,
        place=place,
        whole=whole,
    )
