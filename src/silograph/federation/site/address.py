"""Where the server is: the kit says it, and NVFlare goes by that alone; the invitation says it for people."""

import json
from dataclasses import replace
from pathlib import Path

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph.errors import SilosError
from silograph.federation.folders import Kit, SiteFolder
from silograph.federation.invitation import Invitation, read_invitation, write_invitation

RENEW = "silograph site renew federation.invite"


def address_of(invitation: Invitation) -> str:
    """HOST:PORT."""
    return f"{invitation.server}:{invitation.port}"


def kit_address(kit: Kit) -> str | None:
    """HOST:PORT that a site's kit connects to; none if that cannot be read."""
    try:
        return str(parse_json(kit.config.read_bytes())["servers"][0]["service"]["target"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def used_invitation(folder: SiteFolder) -> Invitation:
    """The site's invitation, with the address that its kit really connects to."""
    invitation = read_invitation(folder.invitation)
    host, _, port = (kit_address(folder.kit) or "").rpartition(":")
    return replace(invitation, server=host, port=int(port)) if host and port.isdecimal() else invitation


def take_address(folder: SiteFolder, newer: Path) -> Invitation:
    """Take the server's address from a newer invitation of the same federation, and nothing else of it.

    Sites that it has more are not agreed to by that: they are pinned with `--new`.
    """
    own, new = read_invitation(folder.invitation), read_invitation(newer)
    if (new.name, new.fingerprint) != (own.name, own.fingerprint):
        raise SilosError(
            f"{newer}: expected an invitation of the federation {own.name!r} with this site's root certificate, got "
            f"one of {new.name!r} with {'the same' if new.fingerprint == own.fingerprint else 'another'} root "
            "certificate. Ask the coordinator which is right: somebody may pose as the federation."
        )
    changed = replace(own, server=new.server, port=new.port)
    if changed != own:
        write_invitation(folder.invitation, changed)
    if folder.kit.config.exists():
        write_kit_address(folder.kit, changed)
    return changed


def write_kit_address(kit: Kit, invitation: Invitation) -> None:
    """Let a kit connect to the address that the invitation gives."""
    if kit_address(kit) == address_of(invitation):
        return
    try:
        config = parse_json(kit.config.read_bytes())
        config["servers"][0]["service"]["target"] = address_of(invitation)
        config["servers"][0]["identity"] = invitation.server
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise SilosError(
            f"{kit.config}: is damaged. Move {kit.path} away and install SITE.signed.zip anew: silograph site renew"
        ) from error
    write_bytes(kit.config, json.dumps(config, indent=2).encode(), durable=True)
