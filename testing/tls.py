"""Authorities, certificates and servers on loopback, right and wrong, for whoever tries the way to a server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, certificate: Path, key: Path) -> None:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        key.chmod(0o600)


class Authority:
    """A root, and whatever it signs."""

    def __init__(self, name: str = "test") -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _name(name)
        self.root = self._sign(self._name, self._key, days=(-10, 3650), ca=True)

    def identity(self, name: str, *, days: tuple[float, float] = (-1, 300)) -> Identity:
        """A certificate that is valid from so many days from now until so many."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return Identity(self._sign(_name(name), key, days=days), pem)

    def _sign(self, name: x509.Name, key: rsa.RSAPrivateKey, *, days: tuple[float, float], ca: bool = False) -> bytes:
        now = datetime.now(UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0]))
            .not_valid_after(now + timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            alternative = x509.SubjectAlternativeName([x509.DNSName(str(name.rdns[0]._attributes[0].value))])
            built = built.add_extension(alternative, critical=False)
        return built.sign(self._key, SHA256()).public_bytes(Encoding.PEM)


@contextmanager
def grpc_server(authority: Authority, identity: Identity) -> Iterator[int]:
    """A server as NVFlare's: gRPC over mutual TLS; its port."""
    import grpc

    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate)], root_certificates=authority.root, require_client_auth=True
    )
    server = grpc.server(futures.ThreadPoolExecutor(2))
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


@contextmanager
def other_server(answer: bytes | None) -> Iterator[int]:
    """A server of something else: it answers the first bytes with these, or never, if there are none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        open_ones: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                open_ones.append(connection)
                if answer is not None:
                    connection.recv(1)
                    connection.sendall(answer)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for connection in open_ones:
            connection.close()
