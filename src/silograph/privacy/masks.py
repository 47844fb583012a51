"""Masks: random numbers that each pair of sites shares, one adds and the other subtracts, so that only the sum is left.

    secret   X25519 of one's own ephemeral key and the other's
    key      HKDF-SHA256 of the secret, with `info` that says what it is for
    mask     the key stream of ChaCha20, 192 bits per number: an element of the ring in which sums are exact (fixed.py)

A key is for one `info` only: the transcript (all sites' signed keys), the task, and the part. Sites that were told
different things have different infos, and what they add up to is noise. Nobody needs to compare notes.

The same info with other data would be a two-time pad: who masks must see to it that it happens once (`Masker`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from silograph.errors import ProtocolError
from silograph.protocol.fixed import Limbs, add_limbs, subtract_limbs

LABEL = b"silograph mask 1"
KEY_BYTES, LIMB_BYTES, LENGTH_BYTES = 32, 24, 8
NO_NONCE = bytes(16)  # every key is used once
PIECE = 4096  # numbers
ZEROS = memoryview(bytes(LIMB_BYTES * PIECE))


def encode_injectively(*parts: bytes) -> bytes:
    """Bytes from which each of the parts could be read again: no two lists of parts give the same."""
    return b"".join(len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts)


def decode_injectively(data: bytes, *, most: int) -> list[bytes]:
    """The parts again, `most` at most; raises for bytes that `encode_injectively` does not make."""
    parts: list[bytes] = []
    start = 0
    while start < len(data):
        begin = start + LENGTH_BYTES
        stop = begin + int.from_bytes(data[start:begin], "big")
        if begin > len(data) or stop > len(data) or len(parts) == most:
            raise ProtocolError("message: its parts do not fit. It was not made by silograph, or was damaged.")
        parts.append(data[begin:stop])
        start = stop
    return parts


def shared_secret(own: X25519PrivateKey, other: bytes) -> bytes:
    """What both sites know and nobody else; raises for a public key that would make it known to all."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as error:  # all zeros: a key of small order
        raise ProtocolError("key: is none that a secret can be made with. The site that sent it is faulty.") from error


def apply_mask(limbs: Limbs, secret: bytes, info: bytes, *, subtract: bool) -> None:
    """Add the numbers that a pair of sites shares for one purpose, or take them out: in pieces that fit the cache."""
    key = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=LABEL + info).derive(secret)
    stream = Cipher(algorithms.ChaCha20(key, NO_NONCE), mode=None).encryptor()
    apply = subtract_limbs if subtract else add_limbs
    numbers = np.empty((min(len(limbs), PIECE), 3), dtype="<u8")
    for start in range(0, len(limbs), PIECE):
        piece = limbs[start : start + PIECE]
        stream.update_into(ZEROS[: LIMB_BYTES * len(piece)], numbers.data.cast("B"))
        apply(piece, numbers[: len(piece)].astype(np.uint64, copy=False))


@dataclass(slots=True, kw_only=True, eq=False)
class Masker:
    """One site's masks in one run: it masks one answer to one task, and no other."""

    name: str
    secrets: Mapping[str, bytes] = field(repr=False)  # by the other site's name
    transcript: bytes  # a digest of all that the sites have signed
    _used: set[bytes] = field(default_factory=set, repr=False)

    def mask(self, parts: Mapping[str, Limbs], *, task: bytes, stage: str, round: int) -> dict[str, Limbs]:  # noqa: A002
        """The parts of an answer, masked; raises when this was asked before."""
        if task in self._used:
            raise ProtocolError(f"{self.name}: has masked an answer to this task before.")
        self._used.add(task)
        where = (self.transcript, task, stage.encode(), str(round).encode())
        return {name: self._mask(limbs, name, where) for name, limbs in parts.items()}

    def _mask(self, limbs: Limbs, part: str, where: Sequence[bytes]) -> Limbs:
        total = np.copy(limbs)
        for other, secret in self.secrets.items():
            low, high = sorted((self.name, other))
            info = encode_injectively(*where, part.encode(), low.encode(), high.encode())
            apply_mask(total, secret, info, subtract=self.name == high)
        return total


def digest_of(*parts: bytes) -> bytes:
    """SHA-256 of parts, each of which could be read again."""
    return hashlib.sha256(encode_injectively(*parts)).digest()
