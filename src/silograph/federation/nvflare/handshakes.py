"""Which connections the server's TLS refused, and why: read from what gRPC's core prints.

gRPC refuses a connection before any of our code sees it, and tells nobody but its own log. With the tracer
`handshaker`, that log has the reason and the address. Not the name: the core checks the certificate and forgets it.
The other side is not told why either: the connection just ends.
"""

import re

TRACE = {"GRPC_TRACE": "handshaker"}

_LINE = re.compile(r"[IWEF]\d{4} [\d:.]+ +\d+ (?P<file>\w+\.(?:cc|h)):\d+\] (?P<text>.*)")
_FILES = ("handshaker.cc", "channel_trace.h", "trace.cc", "ssl_transport_security.cc")  # what the tracer brings
_FAILED = re.compile(r"andshake failed (?:\(\w+\):|with error) \w+: error:\w+:[^:]*:[^:]*:(?P<why>.*)")
_PEER = re.compile(r"endpoint_peer_address=(?P<peer>[^ ,}]+)")
_MORE = ("=== Source Location Trace", "src/core/", " shutdown=")  # further lines of the same record
_DOUBTED = (
    "it does not believe this server's certificate. It is of another federation, knows the server by another name, or "
    "its clock is wrong"
)
# The first words that are found. Others are quoted
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "certificate has expired": "its certificate has expired. Renew it: silograph federation renew SITE",
    "certificate is not yet valid": "its certificate is not valid yet. Is this machine's clock right?",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is of another federation: another root has signed it",
    "ALERT": _DOUBTED,
    "BAD_PACKET_LENGTH": _DOUBTED,  # an alert that came in clear
    "HTTP_REQUEST": "it does not speak TLS",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
}
_LONGEST_QUOTE = 120


class Handshakes:
    """Reads the lines that the server's process prints, one after the other."""

    def __init__(self) -> None:
        self._why: str | None = None
        self._in_record = self._is_traced = False

    def read(self, line: str) -> tuple[bool, str | None]:
        """Whether the tracer brought this line, which nobody need keep; and what to say of a refused connection."""
        found = _LINE.match(line)
        if found is None:
            ours = self._in_record and (line.startswith(_MORE) or not line.strip())
            return ours, self._said(line) if ours else None
        self._in_record = found["file"] in _FILES
        self._is_traced |= found["file"] == "handshaker.cc"
        failed = _FAILED.search(found["text"])
        if failed is not None and not self._is_traced:  # a core without this tracer: the reason alone
            return True, _words("somewhere", failed["why"])
        if failed is not None and found["file"] == "handshaker.cc":
            self._why = failed["why"]
        return self._in_record, self._said(line)

    def _said(self, line: str) -> str | None:
        peer = _PEER.search(line)
        if self._why is None or peer is None:
            return None
        why, self._why = self._why, None
        # Without the port, which is another one each time: so that the same is not said over and over
        return _words(peer["peer"].rpartition(":")[0].removeprefix("ipv4:").removeprefix("ipv6:"), why)


def _words(place: str, why: str) -> str:
    known = next((words for mark, words in _REASONS.items() if mark in why), None)
    return f"Refused a connection from {place}: {known or why[:_LONGEST_QUOTE]}."
