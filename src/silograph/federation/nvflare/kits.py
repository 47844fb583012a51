"""A site's side of the kits: make a key and a request, and install the kit when the signed answer is back.

`authority` says what is verified and what is not, `policy` what a kit allows.
"""

import tempfile
from pathlib import Path

from silograph._util.documents import parse_json
from silograph._util.files import make_folder
from silograph.errors import OutputError, ProtocolError, SilosError
from silograph.federation.folders import Kit, SiteFolder
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.nvflare.policy import harden_site
from silograph.federation.nvflare.provisioning import package_command, participant, read_member, run_nvflare


def make_request(site_folder: Path, invitation: Invitation, site: str) -> Path:
    """Make the site's key and its request, `SITE.request.zip`, which goes to the coordinator."""
    folder = SiteFolder(site_folder.resolve())
    if site not in invitation.sites:
        raise SilosError(
            f"The federation {invitation.name!r} has no site {site!r}. Its sites are {', '.join(invitation.sites)}."
        )
    if folder.key.exists():
        raise OutputError(
            f"{folder.key}: has a key already. Send the request made with it; to begin again, move the folder away."
        )
    make_folder(folder.path)
    folder.path.chmod(0o700)  # the key, the audit log, the results: nobody else's
    request = folder.request(site)
    with tempfile.TemporaryDirectory(prefix=".request.", dir=folder.path) as work:
        definition = participant(Path(work), invitation.name, {"name": site, "type": "client"})
        made = Path(work) / folder.key.name
        run_nvflare([["cert", "request", "-p", str(definition), "--out", str(made)]])
        (made / request.name).replace(request)
        made.replace(folder.key)
    write_invitation(folder.invitation, invitation)  # so that joining needs no second copy
    return request


def install_kit(site_folder: Path, signed_zip: Path, invitation: Invitation) -> Path:
    """Install the kit of the site whose key is in `site_folder`; return its folder. An older kit is replaced."""
    folder, signed_zip = SiteFolder(site_folder.resolve()), signed_zip.resolve()
    _check_answer(signed_zip, site_name(site_folder), invitation)
    kit = folder.kit
    with tempfile.TemporaryDirectory(prefix=".kit.", dir=folder.path) as work:
        command = package_command(signed_zip, folder.key, invitation.shown_fingerprint(), Path(work))
        made = Kit(Path(run_nvflare([command])[0]["output_dir"]), "client")
        _check_address(made, invitation)
        harden_site(made)
        made.path.chmod(0o700)
        _keep_own_settings(kit, made)
        if kit.path.exists():
            kit.path.replace(Path(work) / "old")
        made.path.replace(kit.path)
    make_folder(folder.log.parent)
    return kit.path


def site_invitation(site_folder: Path) -> Invitation:
    """The invitation with which the site's request was made."""
    path = SiteFolder(site_folder).invitation
    if not path.exists():
        raise SilosError(f"{site_folder}: no request was made here. Begin with: silograph site request.")
    return read_invitation(path)


def site_name(site_folder: Path) -> str:
    """The name of the site whose key is in `site_folder`."""
    try:
        return str(parse_json(SiteFolder(site_folder).key_request.read_bytes())["name"])
    except (OSError, ValueError, KeyError) as error:
        raise SilosError(f"{site_folder}: has no site's key. Begin with: silograph site request.") from error


def _check_answer(signed_zip: Path, site: str, invitation: Invitation) -> None:
    """Say in our words what is most often wrong; NVFlare then checks hashes, signatures and the key."""
    try:
        signed = parse_json(read_member(signed_zip, "signed.json"))
        name, project = signed["name"], signed["project"]
        root = str(signed["ca_info"]["rootCA_fingerprint"]).removeprefix("SHA256:").replace(":", "").lower()
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(
            f"{signed_zip}: cannot be read, or is no signed request. Ask the coordinator for SITE.signed.zip."
        ) from error
    if project != invitation.name:
        raise SilosError(f"{signed_zip}: is of the federation {project!r}, the invitation of {invitation.name!r}.")
    if name != site:
        raise SilosError(f"{signed_zip}: is signed for the site {name!r}, the key here is of {site!r}.")
    if root != invitation.fingerprint:
        raise SilosError(
            f"{signed_zip}: is signed below another root certificate than the invitation's. Ask the coordinator "
            "which is right before you go on: somebody may pose as the federation."
        )


def _check_address(kit: Kit, invitation: Invitation) -> None:
    """The address comes with the signed answer; it must be the one that the site was invited to."""
    config = parse_json(kit.config.read_bytes())
    target = config["servers"][0]["service"]["target"]
    if target != f"{invitation.server}:{invitation.port}":
        raise SilosError(f"The kit connects to {target}, the invitation says {invitation.server}:{invitation.port}.")


def _keep_own_settings(old: Kit, new: Kit) -> None:
    """Settings that the site wrote into its policy folder itself outlive a new certificate."""
    for path in old.local.glob("silograph*"):
        (new.local / path.name).write_bytes(path.read_bytes())
