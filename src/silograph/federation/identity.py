"""Who sent a message: signatures with the keys of the federation's certificates.

Connections are encrypted and authenticated by the transport already, hop by hop. A message between coordinator and site
passes through processes that other parts of the transport can reach too, so each is signed by who made it and names who
it is for: another site can neither ask in the coordinator's name nor answer in a site's.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa, types, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from silograph.errors import ProtocolError

HASHED = utils.Prehashed(SHA256())
SALTED = padding.PSS(mgf=padding.MGF1(SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
LONGEST_CERTIFICATE, MOST_CERTIFICATES = 20_000, 1_000  # bytes of one; how many are remembered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signer:
    """One side's own certificate and key."""

    certificate: bytes  # PEM
    key: rsa.RSAPrivateKey

    def sign(self, digest: bytes) -> bytes:
        """The signature of a SHA-256 digest."""
        return self.key.sign(digest, SALTED, HASHED)


class Trust:
    """Believes all that the federation's root certificate has signed.

    Where `key_of` is given, it is asked for each message: of a name, only that key is believed, however many others the
    root has signed for it, and of a name without a key nothing.
    """

    def __init__(self, root: bytes, key_of: Callable[[str], str | None] | None = None) -> None:
        self._root, self._key_of = x509.load_pem_x509_certificate(root), key_of
        self._known: dict[bytes, _Known] = {}

    def knows(self, name: str) -> bool:
        """Whether anything of this name can be believed."""
        return self._key_of is None or self._key_of(name) is not None

    def check(self, certificate: bytes, digest: bytes, signature: bytes) -> str:
        """The name of who signed; raises unless the certificate is one of the federation's and the signature its."""
        known = self._known.get(certificate) or self._accept(certificate)
        if not known.begins <= datetime.now(UTC) <= known.ends:
            raise ProtocolError(f"message: the certificate of {known.name!r} is not valid today. Renew it.")
        if self._key_of is not None and self._key_of(known.name) != known.fingerprint:
            raise ProtocolError(
                f"message: was signed by a key that is not on file for {known.name!r}: revoked, replaced or never "
                "signed here."
            )
        try:
            known.key.verify(signature, digest, SALTED, HASHED)
        except InvalidSignature as error:
            raise ProtocolError(f"message: the signature is not that of {known.name!r}.") from error
        return known.name

    def _accept(self, certificate: bytes) -> "_Known":
        try:
            parsed = x509.load_pem_x509_certificate(certificate)
            parsed.verify_directly_issued_by(self._root)
            key = parsed.public_key()
            (name,) = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        except Exception as error:  # a stranger's bytes: some of what the library raises has no common root
            raise ProtocolError("message: its certificate is none of this federation's.") from error
        if not isinstance(key, rsa.RSAPublicKey):
            raise ProtocolError("message: its certificate has a key of another kind than this federation's.")
        begins, ends = parsed.not_valid_before_utc, parsed.not_valid_after_utc
        found = _Known(name=str(name.value), begins=begins, ends=ends, key=key, fingerprint=_fingerprint_of(key))
        if len(self._known) < MOST_CERTIFICATES:  # certificates are few; a flood of others may not fill the memory
            self._known[certificate] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Known:
    """What is in a certificate below the root."""

    name: str
    begins: datetime
    ends: datetime
    key: rsa.RSAPublicKey
    fingerprint: str


def read_signer(certificate: Path, key: Path) -> Signer:
    """The certificate and key in two PEM files."""
    try:
        loaded = load_pem_private_key(key.read_bytes(), password=None)
        public = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    except (OSError, ValueError, TypeError) as error:
        raise ProtocolError(f"{key}: the key or its certificate cannot be read. Was the kit installed?") from error
    if not isinstance(loaded, rsa.RSAPrivateKey) or loaded.public_key() != public:
        raise ProtocolError(f"{key}: expected the RSA key of {certificate.name}, got another. Install the kit anew.")
    return Signer(certificate=certificate.read_bytes(), key=loaded)


def read_trust(root: Path, key_of: Callable[[str], str | None] | None = None) -> Trust:
    """Trust in the root certificate in a PEM file."""
    try:
        return Trust(root.read_bytes(), key_of)
    except (OSError, ValueError) as error:
        raise ProtocolError(f"{root}: the root certificate cannot be read. Was the kit installed?") from error


def public_key_fingerprint(certificate: bytes) -> str:
    """SHA-256 of the public key (SubjectPublicKeyInfo, DER) of a PEM certificate; a renewed one has the same."""
    try:
        return _fingerprint_of(x509.load_pem_x509_certificate(certificate).public_key())
    except ValueError as error:
        raise ProtocolError("certificate: cannot be read. Was the kit installed, or the request signed?") from error


def request_fingerprint(request: bytes) -> str:
    """The same of a PEM signing request, from which the certificate is made."""
    try:
        return _fingerprint_of(x509.load_pem_x509_csr(request).public_key())
    except ValueError as error:
        raise ProtocolError("signing request: cannot be read. Ask for it to be made again.") from error


def _fingerprint_of(key: types.PublicKeyTypes) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
