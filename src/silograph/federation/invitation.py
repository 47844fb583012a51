"""The invitation: what a site must know before it can ask to join a federation.

One JSON file, not an archive: a person can read it before trusting it, nothing in it is ever unpacked or run, and it
holds no secret. The fingerprint is the SHA-256 of the federation's root certificate. A site that got it by a second
way (telephone, the signed study protocol) and compares it knows that it joins the right federation.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from silograph._util.files import write_text
from silograph.errors import ProtocolError

FORMAT = "silograph invitation"
VERSION = 1
MAX_BYTES = 8_000_000  # 100 000 nodes with long names are below 4 MB
MAX_SITES = 1_000
MAX_NODES = 200_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")  # becomes a certificate's name and a folder's: no dot, no slash
_HOST = re.compile(r"(?=.{1,64}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A federation as its coordinator announces it to the sites."""

    name: str
    server: str  # the host name that sites connect to; it is in the server's certificate
    port: int
    sites: tuple[str, ...]
    fingerprint: str  # SHA-256 of the root certificate, 64 hexadecimal digits
    nodes: tuple[str, ...] | None = None  # None: every site brings its own table's columns
    version: int = VERSION

    def __post_init__(self) -> None:
        """Refuse what could not become certificates, folders and addresses."""
        check_name(self.name, "the federation's name")
        check_host(self.server)
        if not 1 <= self.port <= 65_535:
            raise ProtocolError(f"The port must be between 1 and 65535, got {self.port}.")
        if not 1 <= len(self.sites) <= MAX_SITES:
            raise ProtocolError(f"Expected 1 to {MAX_SITES} sites, got {len(self.sites)}.")
        for site in self.sites:
            check_name(site, "a site's name")
            if site.lower() == "server":
                raise ProtocolError("A site cannot be called 'server': sites would take its messages for the server's.")
        if self.server.lower() in {site.lower() for site in self.sites}:
            raise ProtocolError(
                f"A site cannot have the server's name, {self.server!r}: its certificate would speak for the server."
            )
        _check_distinct([site.lower() for site in self.sites], "site")  # some file systems fold case
        if not _FINGERPRINT.fullmatch(self.fingerprint):
            raise ProtocolError(f"The fingerprint must have 64 hexadecimal digits, got {self.fingerprint[:80]!r}.")
        if self.nodes is not None:
            _check_nodes(self.nodes)

    def shown_fingerprint(self) -> str:
        """The fingerprint as people compare it: `AB:CD:…`, as `openssl x509 -fingerprint -sha256` prints it."""
        digits = self.fingerprint.upper()
        return ":".join(digits[at : at + 2] for at in range(0, 64, 2))


def check_name(name: str, what: str) -> None:
    """Raise unless the name can be a certificate's name and a folder's on any system."""
    if not _NAME.fullmatch(name):
        raise ProtocolError(
            f"Expected for {what} up to 63 letters, digits, '-' and '_', beginning with a letter or digit; "
            f"got {name[:80]!r}."
        )


def check_host(host: str) -> None:
    """Raise unless this is a host name that a certificate can carry."""
    if not _HOST.fullmatch(host) or _is_address(host):
        raise ProtocolError(
            f"Expected the server's host name, such as coord.example.org or localhost, got {host[:80]!r}. "
            "A bare IP address cannot be checked against the server's certificate: give it a name."
        )


def write_invitation(path: Path, invitation: Invitation) -> Path:
    """Write the invitation, whole or not at all."""
    content = {"format": FORMAT, **asdict(invitation)}
    if invitation.nodes is None:
        del content["nodes"]
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_invitation(path: Path) -> Invitation:
    """Read an invitation that came from outside."""
    content = _content(path)
    if content.get("format") != FORMAT:
        raise ProtocolError(f"{path}: is not a silograph invitation. Ask the coordinator for the .invite file.")
    if content.get("version") != VERSION:
        raise ProtocolError(
            f"{path}: has format version {content.get('version')!r}, this silograph reads version {VERSION}. "
            "Install the version of silograph that the coordinator has."
        )
    try:
        return Invitation(**_arguments(content))
    except (ProtocolError, TypeError) as error:
        raise ProtocolError(f"{path}: {error} Ask the coordinator for a fresh invitation.") from error


def _content(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ProtocolError(
            f"{path}: cannot be read ({error.strerror}). Give the coordinator's .invite file."
        ) from error
    if len(data) > MAX_BYTES:
        raise ProtocolError(f"{path}: is larger than {MAX_BYTES} bytes, so it is no invitation.")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{path}: is damaged or no invitation. Ask the coordinator to send it again.") from error
    if not isinstance(content, dict):
        raise ProtocolError(f"{path}: is not a silograph invitation. Ask the coordinator for the .invite file.")
    return content


def _arguments(content: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(Invitation)}
    unknown = sorted(set(content) - known - {"format"})
    if unknown:
        raise ProtocolError(f"The invitation has an unknown entry {unknown[0][:80]!r}.")
    for name in ("name", "server", "fingerprint"):
        _check_type(content, name, str)
    _check_type(content, "port", int)
    arguments = {key: value for key, value in content.items() if key != "format"}
    for name in ("sites", "nodes"):
        if name in content:
            arguments[name] = _texts(content, name)
    return arguments


def _check_type(content: dict[str, Any], name: str, expected: type) -> None:
    if type(content.get(name)) is not expected:
        raise ProtocolError(f"The entry {name!r} is missing or not of type {expected.__name__}.")


def _texts(content: dict[str, Any], name: str) -> tuple[str, ...]:
    _check_type(content, name, list)
    if not all(isinstance(entry, str) for entry in content[name]):
        raise ProtocolError(f"The entry {name!r} must list texts only.")
    return tuple(content[name])


def _check_nodes(nodes: tuple[str, ...]) -> None:
    if not 2 <= len(nodes) <= MAX_NODES:
        raise ProtocolError(f"Expected 2 to {MAX_NODES} nodes, got {len(nodes)}.")
    for node in nodes:
        if not node or len(node) > 200 or not node.isprintable():
            raise ProtocolError(f"A node's name must have 1 to 200 printable characters, got {node[:80]!r}.")
    _check_distinct(list(nodes), "node")


def _check_distinct(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProtocolError(f"The {what} {twice!r} is named twice.")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
