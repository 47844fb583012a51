"""A site's key for one run, signed: all sites of a masked study exchange theirs before any of them masks a sum.

    | statement | certificate | signature |        each after its length; the statement names study, run, sites, nodes

The coordinator carries them, and it holds the root key: it could certify a second "oslo". So a site holds every
signature against the public key that the study names, and the study against the keys that its own people pinned
(site/masking.py). Sites that were given different statements have different transcripts, and add up to noise.

Where sites may lack nodes, each states which pairs it has. Everybody counts for himself how many sites have a pair, and
leaves pairs out that are in fewer than the most careful of the sites asks for: there the sum would show one.

With noise, each states a random name for its data. Shares of noise may be used again only if all data are the same: in
the difference of two sums, shares that stayed would cancel, and one site's change would have its own share alone.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from silograph._util.types import BoolVector
from silograph.errors import ProtocolError
from silograph.federation.envelope import LONGEST_SIGNATURE
from silograph.federation.identity import LONGEST_CERTIFICATE, Signer, Trust, public_key_fingerprint
from silograph.federation.study_file import StudyFile
from silograph.privacy.masks import KEY_BYTES, decode_injectively, digest_of, encode_injectively, shared_secret

LABEL = b"silograph key 1"
N_PARTS = 10  # of a statement
LONGEST_TEXTS = 1000  # bytes of a statement beside the sites' names and its pairs
LONGEST_NAME = 64  # bytes of a site's name, with its length
DATA_BYTES = 16  # of a name for data


class WrongKeyError(ProtocolError):
    """A statement that was signed by another key than the study names for the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the sites of a run state alike, and who they are."""

    study: str  # SHA-256
    run: str  # with its generation
    roster: tuple[str, ...]
    nodes: str  # digest of their names
    n_pairs: int
    missing_nodes: bool  # whether sites may lack some
    noisy: bool  # whether the sum carries noise
    keys: Mapping[str, str] = field(repr=False)  # site → fingerprint of its public key

    @classmethod
    def of(cls, study: StudyFile, run: str, roster: Sequence[str], nodes: Sequence[str], n_pairs: int) -> "Terms":
        """Of a run of a masked study."""
        return cls(
            study=study.sha256,
            run=run,
            roster=tuple(roster),
            nodes=digest_of_names(nodes),
            n_pairs=n_pairs,
            missing_nodes=study.settings.may_lack_nodes,
            noisy=study.settings.privacy.noisy,
            keys=study.keys,
        )

    @property
    def largest_statement(self) -> int:
        """Bytes that a signed statement can have at most."""
        own = LONGEST_TEXTS + LONGEST_NAME * (len(self.roster) + 1) + self.n_pairs // 8
        return own + LONGEST_CERTIFICATE + LONGEST_SIGNATURE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStatement:
    """What one site states of itself."""

    site: str
    key: bytes  # X25519, for this run alone
    least: int  # sites that must have a pair before this one tells of it
    has: bytes | None = None  # the pairs that it has, as packed bits; None: all
    data: bytes = b""  # with noise, a random name for its data: another one once they have changed

    def encode(self, terms: Terms) -> bytes:
        """The bytes that are signed; no other statement has the same."""
        roster = encode_injectively(*(site.encode() for site in terms.roster))
        about = (terms.study.encode(), terms.run.encode(), roster, terms.nodes.encode())
        own = (self.site.encode(), self.key, str(self.least).encode(), self.has or b"", self.data)
        return encode_injectively(LABEL, *about, *own)


def digest_of_names(names: Sequence[str]) -> str:
    """SHA-256 of a list of names, in order."""
    return hashlib.sha256(json.dumps(list(names)).encode()).hexdigest()


def sign_statement(statement: KeyStatement, terms: Terms, signer: Signer) -> bytes:
    """The statement's bytes, the certificate and the signature of both."""
    text = statement.encode(terms)
    return encode_injectively(text, signer.certificate, signer.sign(_signed(text, signer.certificate)))


def read_statement(data: bytes, site: str, terms: Terms, trust: Trust) -> KeyStatement:
    """A site's statement, once the key that the study names has signed it for just this run; errors name the site."""
    try:
        return _read(data, site, terms, trust)
    except WrongKeyError:
        raise
    except ProtocolError as error:
        raise ProtocolError(f"{site}, key: {error}") from error


def _read(data: bytes, site: str, terms: Terms, trust: Trust) -> KeyStatement:
    if len(data) > terms.largest_statement:
        raise ProtocolError(f"expected at most {terms.largest_statement} bytes, got {len(data)}.")
    parts = decode_injectively(data, most=3)
    if len(parts) != 3 or len(parts[1]) > LONGEST_CERTIFICATE or len(parts[2]) > LONGEST_SIGNATURE:
        raise ProtocolError("expected a statement, a certificate and a signature.")
    text, certificate, signature = parts
    signed_by = trust.check(certificate, _signed(text, certificate), signature)
    if signed_by != site:
        raise ProtocolError(f"was signed by {signed_by[:40]!r}.")
    if public_key_fingerprint(certificate) != terms.keys[site]:
        raise WrongKeyError(
            f"{site}, key: was signed by another key than the study names. If its key was made anew, compare "
            "fingerprints and write a new study; if not, somebody poses as it."
        )
    return _parse(text, site, terms)


def _parse(text: bytes, site: str, terms: Terms) -> KeyStatement:
    """What a statement says of its site; of all else it must say what everybody knows."""
    parts = decode_injectively(text, most=N_PARTS)
    if len(parts) != N_PARTS:
        raise ProtocolError(f"expected {N_PARTS} parts, got {len(parts)}.")
    key, least, has, data = parts[6:]
    if len(key) != KEY_BYTES:
        raise ProtocolError(f"expected {KEY_BYTES} bytes of a public key, got {len(key)}.")
    if not least.isdigit() or len(least) > 4 or not 1 <= int(least) <= len(terms.roster):
        raise ProtocolError(f"expected a least number of sites up to {len(terms.roster)}.")
    if has and not (terms.missing_nodes and _pack(_unpack(has, terms.n_pairs)) == has):
        raise ProtocolError(f"expected all pairs, or a bit for each of {terms.n_pairs} where nodes may be missing.")
    if len(data) != (DATA_BYTES if terms.noisy else 0):
        raise ProtocolError(f"expected a name for its data, of {DATA_BYTES} bytes, with noise, and none without.")
    statement = KeyStatement(site=site, key=key, least=int(least), has=has or None, data=data)
    if statement.encode(terms) != text:
        raise ProtocolError("is of another study, run or generation, of other sites or of other nodes.")
    shared_secret(X25519PrivateKey.generate(), key)  # raises for a key with which every secret is known
    return statement


def join_statements(statements: Sequence[bytes]) -> bytes:
    """All sites' signed statements, in the order of the roster."""
    return encode_injectively(*statements)


def split_statements(data: bytes, terms: Terms) -> list[bytes]:
    """The same again, one of each site; none of them is believed yet."""
    statements = decode_injectively(data, most=len(terms.roster))
    if len(statements) != len(terms.roster):
        raise ProtocolError(f"keys: expected one of each of {len(terms.roster)} sites, got {len(statements)}.")
    return statements


def transcript_of(statements: Sequence[bytes]) -> bytes:
    """A digest of all that the sites have signed."""
    return digest_of(*statements)


def together_of(names: Sequence[bytes]) -> str:
    """A name for all sites' data together, in the order of the roster."""
    return digest_of(*names).hex()


# --- pairs that few sites have ----------------------------------------------------------------------------------------


def pack_pairs(has: BoolVector) -> bytes | None:
    """The pairs that a site has, for its statement."""
    return None if has.all() else _pack(has)


def shown_pairs(statements: Sequence[KeyStatement], n_pairs: int) -> BoolVector | None:
    """The pairs that may be in the sum; None: all.

    Every site leaves out the same ones: where one alone left out its term, the sum would show the others'.
    """
    count = np.zeros(n_pairs, dtype=np.int32)
    for statement in statements:
        count += True if statement.has is None else _unpack(statement.has, n_pairs)
    shown: BoolVector = count >= max(statement.least for statement in statements)
    return None if shown.all() else shown


def _pack(has: BoolVector) -> bytes:
    return np.packbits(has).tobytes()


def _unpack(packed: bytes, n_pairs: int) -> BoolVector:
    if len(packed) != (n_pairs + 7) // 8:
        raise ProtocolError(f"expected a bit for each of {n_pairs} pairs, got {len(packed)} bytes.")
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=n_pairs).astype(np.bool_)


def _signed(text: bytes, certificate: bytes) -> bytes:
    """What a signature is of: the certificate, too, whose bytes others could else alter without a trace."""
    return digest_of(LABEL, text, certificate)
