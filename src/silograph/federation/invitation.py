"""The invitation: all that a site must know before it can ask to join a federation.

One JSON file, not an archive: a person can read it before trusting it, nothing in it is ever unpacked or run, and it
holds no secret. The fingerprint is the SHA-256 of the federation's root certificate. A site that got it by a second
way (telephone, the signed study protocol) and compares it knows that it joins the right federation.
"""

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from silograph._util.documents import fill, parse_json, read_bytes, show
from silograph._util.files import write_text
from silograph.errors import ParameterError, ProtocolError
from silograph.federation.fingerprints import FINGERPRINT, shown_fingerprint
from silograph.federation.names import check_federation_name, check_site_name, names_of

INVITATION_FORMAT = "silograph invitation"
INVITATION_VERSION = 1
LARGEST_INVITATION = 8_000_000  # 100 000 nodes with long names are below 4 MB
MOST_SITES = 1_000
MOST_NODES = 200_000

_HOST = re.compile(r"(?=.{1,64}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A federation as its coordinator announces it to the sites."""

    name: str
    server: str  # the host name that sites connect to; it is in the server's certificate
    port: int
    sites: tuple[str, ...]
    fingerprint: str  # SHA-256 of the root certificate, 64 hexadecimal digits
    nodes: tuple[str, ...] | None = None  # None: every site brings its own table's columns
    version: int = INVITATION_VERSION

    def __post_init__(self) -> None:
        """Refuse names and addresses that no certificate and no folder could have."""
        _check_names(self.name, self.sites, self.nodes)
        check_host(self.server)
        if not 1 <= self.port <= 65_535:
            raise ProtocolError(f"The port must be between 1 and 65535, got {self.port}.")
        if self.server.lower() in self.sites:
            raise ProtocolError(
                f"A site cannot have the server's name, {self.server!r}: its certificate would speak for the server."
            )
        if not FINGERPRINT.fullmatch(self.fingerprint):
            raise ProtocolError(f"The fingerprint must have 64 hexadecimal digits, got {self.fingerprint[:80]!r}.")

    def shown_fingerprint(self) -> str:
        """The fingerprint as people compare it: `AB:CD:…`, as `openssl x509 -fingerprint -sha256` prints it."""
        return shown_fingerprint(self.fingerprint)


def check_host(host: str) -> None:
    """Raise unless this is a host name that a certificate can carry."""
    if not _HOST.fullmatch(host) or _is_address(host):
        raise ProtocolError(
            f"Expected the server's host name, such as coord.example.org or localhost, got {host[:80]!r}. "
            "A bare IP address cannot be checked against the server's certificate: give it a name."
        )


def write_invitation(path: Path, invitation: Invitation) -> Path:
    """Write the invitation, whole or not at all."""
    content = {"format": INVITATION_FORMAT, **asdict(invitation)}
    if invitation.nodes is None:
        del content["nodes"]
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_invitation(path: Path) -> Invitation:
    """Read an invitation that came from outside."""
    try:
        data = read_bytes(path, most=LARGEST_INVITATION, cure="Give the coordinator's .invite file.")
        content = parse_json(data)
    except ParameterError as error:
        raise ProtocolError(str(error)) from error
    except ValueError as error:
        raise ProtocolError(f"{path}: is damaged or no invitation. Ask the coordinator to send it again.") from error
    if content.pop("format", None) != INVITATION_FORMAT:
        raise ProtocolError(f"{path}: is not a silograph invitation. Ask the coordinator for the .invite file.")
    if content.get("version") != INVITATION_VERSION:
        raise ProtocolError(
            f"{path}: has format version {show(content.get('version'))}, this silograph reads version "
            f"{INVITATION_VERSION}. Install the version of silograph that the coordinator has."
        )
    try:
        return fill(Invitation, content)
    except (ProtocolError, ParameterError) as error:
        raise ProtocolError(f"{path}: {error} Ask the coordinator for a fresh invitation.") from error


def _check_names(federation: str, sites: Sequence[str], nodes: Sequence[str] | None) -> None:
    """Raise unless a study can name all of it."""
    try:
        check_federation_name(federation)
        if not 1 <= len(sites) <= MOST_SITES:
            raise ParameterError(f"Expected 1 to {MOST_SITES} sites, got {len(sites)}.")
        names_of([site.lower() for site in sites], "sites", least=1)
        for site in sites:
            check_site_name(site)
        if nodes is not None and len(names_of(nodes, "nodes", least=2)) > MOST_NODES:
            raise ParameterError(f"Expected 2 to {MOST_NODES} nodes, got {len(nodes)}.")
    except ParameterError as error:
        raise ProtocolError(str(error)) from error


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
