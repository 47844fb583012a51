"""Fingerprints of keys and certificates: SHA-256 in 64 hexadecimal digits, and as people compare them."""

import re

from silograph._util.documents import show
from silograph.errors import ParameterError

FINGERPRINT = re.compile(r"[0-9a-f]{64}")  # as files have it
SEPARATORS = re.compile(r"[:\s]")


def shown_fingerprint(fingerprint: str) -> str:
    """As people compare it: `AB:CD:…`, as `openssl x509 -fingerprint -sha256` prints it."""
    digits = fingerprint.upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def parse_fingerprint(text: str) -> str:
    """What a person typed, with colons or spaces or none, in capitals or not. All of it: a part is soon imitated."""
    digits = SEPARATORS.sub("", text).lower()
    if not FINGERPRINT.fullmatch(digits):
        raise ParameterError(
            f"fingerprint: expected 64 hexadecimal digits, such as AB:CD:…, got {show(text)}. Give all of them, as "
            "`silograph site pin` shows them at that site."
        )
    return digits
