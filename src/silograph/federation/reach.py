"""Whether the server can be reached, step by step as a connection is made: name, port, TLS, whose certificate, ours.

It is tried from this process with the kit's own certificate. Nothing is asked of the server: the connection ends once
it is clear that both sides accept each other.
"""

import contextlib
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import NameOID

from silograph.errors import ProtocolError
from silograph.federation.certificates import certificate_ends
from silograph.federation.folders import Kit
from silograph.federation.invitation import Invitation

SECONDS = 5.0  # for each step
Step = Literal["name", "port", "tls", "certificate"]
STEPS: tuple[Step, ...] = ("name", "port", "tls", "certificate")
# OpenSSL's reasons why a certificate is not believed
_EXPIRED, _NOT_YET, _OTHER_NAME = 10, 9, 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why the server cannot be reached: at which step, what was found, and what to do."""

    step: Step
    found: str
    cure: str

    def __str__(self) -> str:
        return f"{self.found}. {self.cure}"


class _FaultError(Exception):
    def __init__(self, step: Step, found: str, cure: str) -> None:
        super().__init__(found)
        self.fault = Fault(step=step, found=found, cure=cure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far one comes: to which address, and the first fault on the way; none if both sides accept each other."""

    address: str | None = None
    fault: Fault | None = None


def reach(invitation: Invitation, kit: Kit, *, seconds: float = SECONDS) -> Reached:
    """Try the way to the server."""
    host, port, place = invitation.server, invitation.port, None
    try:
        address = _resolve(host, port)
        place = str(address[4][0])
        with _connect(host, port, address, seconds) as connection:
            _greet(connection, host, port, kit)
    except _FaultError as error:
        return Reached(address=place, fault=error.fault)
    return Reached(address=place)


_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int, ...]]


def _resolve(host: str, port: int) -> _Address:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: no name of a machine, such as one with 64 letters at once
        why = "it is no name of a machine" if isinstance(error, UnicodeError) else error.strerror or error
        raise _FaultError(
            "name",
            f"the name {host!r} is not known here ({why})",
            "Check the network and the name server of this machine, and the name with the coordinator",
        ) from error
    found.sort(key=lambda one: one[0] != socket.AF_INET)  # NVFlare listens there
    return found[0]  # type: ignore[return-value]


def _connect(host: str, port: int, address: _Address, seconds: float) -> socket.socket:
    connection = socket.socket(address[0], address[1])
    connection.settimeout(seconds)
    try:
        connection.connect(address[4])
        return connection
    except OSError as error:
        connection.close()
        raise _FaultError("port", *_no_connection(host, port, error, seconds)) from error


def _no_connection(host: str, port: int, error: OSError, seconds: float) -> tuple[str, str]:
    if isinstance(error, ConnectionRefusedError):
        return (
            f"nothing listens at port {port} of {host}",
            "The server is not running, or the port is another one: ask the coordinator",
        )
    if isinstance(error, TimeoutError):
        return (
            f"port {port} of {host} does not answer within {seconds:g} s",
            "A firewall on the way drops it, or that machine is off: ask for outbound TCP to this port",
        )
    return f"port {port} of {host} cannot be reached ({error.strerror or error})", "Check the network of this machine"


def _greet(connection: socket.socket, host: str, port: int, kit: Kit) -> None:
    """Shake hands, and wait for the first words of the server: it says them once it accepts our certificate."""
    with _shake_hands(connection, host, port, kit) as secured:
        try:
            if secured.recv(1):
                return
            how = "it ended the connection"
        except TimeoutError as error:
            raise _FaultError("tls", *_hangs(host, port)) from error
        except OSError as error:  # no gRPC of today says why; others may
            how = str(getattr(error, "reason", None) or error.strerror)
    raise _FaultError("certificate", *_we_are_refused(kit, host, how))


def _shake_hands(connection: socket.socket, host: str, port: int, kit: Kit) -> ssl.SSLSocket:
    context = _context(kit)
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise _FaultError("certificate", *_not_believed(error, host, port)) from error
    except TimeoutError as error:
        raise _FaultError("tls", *_hangs(host, port)) from error
    except OSError as error:
        raise _FaultError("tls", *_no_tls(host, port)) from error


def _context(kit: Kit) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(kit.root_certificate))
        context.load_cert_chain(kit.certificate, kit.key)
    except OSError as error:  # of which ssl.SSLError is one
        raise _FaultError(
            "certificate",
            f"our own certificate and key cannot be used ({getattr(error, 'reason', None) or error.strerror})",
            "Put them back; at a site, `silograph site doctor` says more",
        ) from error
    context.set_alpn_protocols(["h2"])  # gRPC ends a connection without
    return context


def _hangs(host: str, port: int) -> tuple[str, str]:
    return (
        f"port {port} of {host} takes connections, and then does not answer",
        "The server hangs, or something on the way stops it: ask the coordinator",
    )


def _no_tls(host: str, port: int) -> tuple[str, str]:
    return (
        f"what listens at port {port} of {host} does not speak TLS",
        "It is another program, or a proxy on the way: ask the coordinator for the port, and here for a way around",
    )


def _not_believed(error: ssl.SSLCertVerificationError, host: str, port: int) -> tuple[str, str]:
    shown = _shown_certificate(host, port)
    if error.verify_code == _EXPIRED and shown is not None:
        return (
            f"the server's certificate ended on {shown.not_valid_after_utc:%Y-%m-%d}",
            "The coordinator renews it (silograph federation renew server), unless the clock here is wrong",
        )
    if error.verify_code == _NOT_YET and shown is not None:
        return (
            f"the server's certificate is not valid before {shown.not_valid_before_utc:%Y-%m-%d %H:%M} UTC",
            f"It is {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by this machine's clock: set the clock",
        )
    if error.verify_code == _OTHER_NAME:
        return f"the server's certificate is not for the name {host!r}", "Ask the coordinator for the right name"
    who = "" if shown is None else f", issued by {_common_name(shown.issuer)!r} for {_common_name(shown.subject)!r}"
    return (
        f"{host}:{port} shows a certificate of another federation{who}: the root certificate that we know "
        "it by has not signed it",
        "Ask the coordinator, by telephone, which is right: somebody may pose as the server",
    )


def _shown_certificate(host: str, port: int) -> x509.Certificate | None:
    """The certificate that the server shows, believed or not: to tell whose it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host, port), SECONDS) as connection:
        with context.wrap_socket(connection, server_hostname=host) as secured:
            shown = secured.getpeercert(binary_form=True)
        return None if shown is None else x509.load_der_x509_certificate(shown)
    return None


def _common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value)[:80] if found else "nobody"


def _we_are_refused(kit: Kit, host: str, how: str) -> tuple[str, str]:
    with contextlib.suppress(ProtocolError):
        ends = certificate_ends(kit.certificate)
        if ends <= datetime.now(UTC):
            return (
                f"the server refuses our certificate, which ended on {ends:%Y-%m-%d}",
                "Ask the coordinator for a new one, then: silograph site renew SITE.signed.zip",
            )
    return (
        f"{host} does not accept our certificate ({how}, and does not say why)",
        "Ask the coordinator what the server's log says, and whether the clock there is right",
    )
