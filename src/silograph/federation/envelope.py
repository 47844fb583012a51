"""A signed envelope: sender, receiver, subject, and the bytes themselves.

    | magic, format, sizes | head (JSON) | certificate (PEM) | body | signature |

The signature is of the digest of all before the body, and of the body's own digest: the same body for many sites is
hashed once.

The coordinator's envelopes ask, a site's reply; a reply names the digest of what it replies to, so that it fits no
other request. Nothing in an envelope is believed, or even parsed beyond its sizes, before the signature is right.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from silograph._util.documents import parse_json
from silograph.errors import ProtocolError
from silograph.federation.identity import LONGEST_CERTIFICATE, Signer, Trust

MAGIC, ENVELOPE_FORMAT = b"SLGE", 2
HEAD = struct.Struct("<4sHHIIQ")  # magic, format, signature bytes, head bytes, certificate bytes, body bytes
LONGEST_HEAD = 1_000_000  # bytes: the names of a thousand sites, and more
LONGEST_BODY = 2**34  # bytes
LONGEST_SIGNATURE = 2**16 - 1  # bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerifiedMessage:
    """An envelope whose signature is right."""

    sender: str  # the name in the sender's certificate
    head: Mapping[str, Any]
    body: bytes
    body_digest: str  # of the body alone, in hexadecimal
    digest: str  # what was signed, in hexadecimal: by it a reply names what it replies to

    def text(self, name: str) -> str:
        """An entry of the head that must be text."""
        value = self.head.get(name)
        if not isinstance(value, str):
            raise ProtocolError(f"message: expected text as {name!r}. It was not made by silograph.")
        return value


class SignedMessage:
    """The same head and body for several sites: each envelope differs in whom it is for, and in what `each` adds."""

    def __init__(
        self,
        head: Mapping[str, Any],
        body: bytes,
        signer: Signer,
        *,
        each: Callable[[str], Mapping[str, Any]] = lambda site: {},
    ) -> None:
        self._head, self._body, self._signer, self._each = head, body, signer, each
        self._body_hash = hashlib.sha256(body)

    @property
    def body_digest(self) -> str:
        """Of the body alone, in hexadecimal."""
        return self._body_hash.hexdigest()

    def to(self, site: str) -> tuple[bytes, str]:
        """The envelope's bytes, and the digest by which a reply will name it."""
        text = json.dumps({**self._head, **self._each(site), "to": site}, separators=(",", ":")).encode()
        certificate, signer = self._signer.certificate, self._signer
        sizes = (signer.key.key_size // 8, len(text), len(certificate), len(self._body))
        front = HEAD.pack(MAGIC, ENVELOPE_FORMAT, *sizes) + text + certificate
        digest = hashlib.sha256(front + self._body_hash.digest())
        return b"".join((front, self._body, signer.sign(digest.digest()))), digest.hexdigest()


def largest_message(body: int) -> int:
    """How many bytes an envelope can have at most whose body has no more than so many."""
    return HEAD.size + LONGEST_HEAD + LONGEST_CERTIFICATE + body + LONGEST_SIGNATURE


def open_message(data: bytes, trust: Trust) -> VerifiedMessage:
    """The content, once sizes, certificate and signature are right."""
    if len(data) < HEAD.size:
        raise ProtocolError(f"message: expected at least {HEAD.size} bytes, got {len(data)}.")
    magic, version, n_signature, n_head, n_certificate, n_body = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError("message: expected one of silograph's, got something else.")
    if version != ENVELOPE_FORMAT:
        raise ProtocolError(
            f"message: expected format {ENVELOPE_FORMAT}, got {version}. Run the same silograph on both sides."
        )
    if n_head > LONGEST_HEAD or n_certificate > LONGEST_CERTIFICATE or n_body > LONGEST_BODY:
        raise ProtocolError("message: its parts are larger than any that silograph makes.")
    certificate_at = HEAD.size + n_head
    body_at = certificate_at + n_certificate
    end = body_at + n_body
    if len(data) != end + n_signature:
        raise ProtocolError(f"message: expected {end + n_signature} bytes, got {len(data)}. It was cut or damaged.")
    view = memoryview(data)
    body_digest = hashlib.sha256(view[body_at:end])
    digest = hashlib.sha256(bytes(view[:body_at]) + body_digest.digest())
    sender = trust.check(bytes(view[certificate_at:body_at]), digest.digest(), bytes(view[end:]))
    return VerifiedMessage(
        sender=sender,
        head=_head(bytes(view[HEAD.size : certificate_at])),
        body=bytes(view[body_at:end]),
        body_digest=body_digest.hexdigest(),
        digest=digest.hexdigest(),
    )


def _head(text: bytes) -> dict[str, Any]:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ProtocolError("message: its head cannot be read. It was not made by silograph.") from error
