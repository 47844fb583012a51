"""A site's side of the kits: make a key and a request, and install the kit when the signed answer is back.

`authority` says what is verified and what is not, `policy` what a kit allows.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silograph._util.documents import parse_json
from silograph._util.files import make_folder, write_bytes
from silograph.errors import OutputError, ProtocolError, SilosError
from silograph.federation.certificates import certificate_ends
from silograph.federation.folders import Kit, SiteFolder
from silograph.federation.identity import public_key_fingerprint
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.names import check_site_name
from silograph.federation.nvflare.hosting import running
from silograph.federation.nvflare.policy import harden_site
from silograph.federation.nvflare.provisioning import package_command, participant, read_member, run_nvflare
from silograph.federation.site.address import address_of, kit_address, write_kit_address


def make_request(site_folder: Path, invitation: Invitation, site: str) -> Path:
    """Make the site's key and its request, `SITE.request.zip`, which goes to the coordinator."""
    folder = SiteFolder(site_folder.resolve())
    if site not in invitation.sites:
        raise SilosError(
            f"The federation {invitation.name!r} has no site {site!r}. Its sites are {', '.join(invitation.sites)}. "
            "If it was added later, ask the coordinator for the new invitation."
        )
    if folder.key.exists():
        raise OutputError(
            f"{folder.key}: has a key already. Send the request made with it. If it was lost, stolen or revoked: stop "
            f"the site, move {folder.key} and {folder.kit.path} away, and ask again; settings, log and ledger stay."
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
    folder = SiteFolder(site_folder.resolve())
    kit = folder.kit
    with _made_kit(folder, signed_zip.resolve(), invitation) as made:
        harden_site(made)
        made.path.chmod(0o700)
        _keep_own_settings(kit, made)
        if kit.path.exists():
            kit.path.replace(made.path.parent / "old")
        made.path.replace(kit.path)
    make_folder(folder.log.parent)
    return kit.path


def renew_kit(site_folder: Path, signed_zip: Path, invitation: Invitation) -> bool:
    """Put a new certificate in the place of the old one, also while the site runs; nothing else changes.

    Where the site has made a new key, the kit is installed anew instead. Whether the key is the same.
    """
    folder = SiteFolder(site_folder.resolve())
    with _made_kit(folder, signed_zip.resolve(), invitation) as made:
        certificate = made.certificate.read_bytes()
        ends = certificate_ends(made.certificate)
    before = folder.kit.certificate
    if before.exists() and public_key_fingerprint(before.read_bytes()) == public_key_fingerprint(certificate):
        if ends < certificate_ends(before):
            raise SilosError(
                f"{signed_zip}: its certificate ends on {ends:%Y-%m-%d at %H:%M}, the one here on "
                f"{certificate_ends(before):%Y-%m-%d at %H:%M}. This is an older answer: ask the coordinator for the "
                "new one."
            )
        write_bytes(before, certificate, durable=True)
        write_kit_address(folder.kit, invitation)  # which is that of the answer
        return True
    if running(folder.path) is not None:
        raise SilosError(f"{folder.path}: the site runs with its old key. Stop it, then renew.")
    install_kit(site_folder, signed_zip, invitation)
    return False


def signed_for(signed_zip: Path) -> str:
    """The site that a signed request is for, whatever the file is called."""
    try:
        site = str(parse_json(read_member(signed_zip, "signed.json"))["name"])
        check_site_name(site)
    except (ValueError, KeyError) as error:
        raise _no_answer(signed_zip) from error
    return site


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


@contextmanager
def _made_kit(folder: SiteFolder, signed_zip: Path, invitation: Invitation) -> Iterator[Kit]:
    """A kit for the site's key, made to the side of what the coordinator signed, once that is found right."""
    site = site_name(folder.path)
    _check_answer(signed_zip, site, invitation)
    _check_request(signed_zip, folder)
    with tempfile.TemporaryDirectory(prefix=".kit.", dir=folder.path) as work:
        plain = Path(work) / f"{site}.signed.zip"  # NVFlare asks for such a name; mail programs make others of it
        shutil.copyfile(signed_zip, plain)
        key = shutil.copytree(folder.key, Path(work) / "key")  # NVFlare writes into it, before we are content
        command = package_command(plain, key, invitation.shown_fingerprint(), Path(work) / "made")
        made = Kit(Path(run_nvflare([command])[0]["output_dir"]), "client")
        _check_address(made, invitation)
        yield made


def _no_answer(signed_zip: Path) -> ProtocolError:
    return ProtocolError(
        f"{signed_zip}: cannot be read, or is no signed request. Ask the coordinator for SITE.signed.zip."
    )


def _check_answer(signed_zip: Path, site: str, invitation: Invitation) -> None:
    """Say in our words what is most often wrong; NVFlare then checks hashes, signatures and the key."""
    try:
        signed = parse_json(read_member(signed_zip, "signed.json"))
        name, project = signed["name"], signed["project"]
        root = str(signed["ca_info"]["rootCA_fingerprint"]).removeprefix("SHA256:").replace(":", "").lower()
    except (ValueError, KeyError, TypeError) as error:
        raise _no_answer(signed_zip) from error
    if project != invitation.name:
        raise SilosError(f"{signed_zip}: is of the federation {project!r}, the invitation of {invitation.name!r}.")
    if name != site:
        raise SilosError(f"{signed_zip}: is signed for the site {name!r}, the key here is of {site!r}.")
    if root != invitation.fingerprint:
        raise SilosError(
            f"{signed_zip}: is signed below another root certificate than the invitation's. Ask the coordinator "
            "which is right before you go on: somebody may pose as the federation."
        )


def _check_request(signed_zip: Path, folder: SiteFolder) -> None:
    """Of several requests of a site, such as with a key made anew, the answer must be to that of the key here."""
    try:
        asked = parse_json(folder.key_request.read_bytes()).get("request_id")
        answered = parse_json(read_member(signed_zip, "signed.json")).get("request_id")
    except (OSError, ValueError) as error:
        raise _no_answer(signed_zip) from error
    if asked != answered:
        site = site_name(folder.path)
        raise SilosError(
            f"{signed_zip}: is the answer to another request of {site} than that of the key in {folder.key}. Ask the "
            f"coordinator to approve the last one, {folder.request(site)}, and install that answer."
        )


def _check_address(kit: Kit, invitation: Invitation) -> None:
    """The address comes with the signed answer; it must be the one that the site was invited to."""
    answer, invited = kit_address(kit), address_of(invitation)
    if answer != invited:
        raise SilosError(
            f"The coordinator's answer says that the server is at {answer}, this site's invitation at {invited}. Ask "
            "the coordinator which is right. If the answer is: get the newest NAME.invite, then silograph site renew "
            "NAME.invite, and install the answer after that. If the invitation is: ask for a new answer."
        )


def _keep_own_settings(old: Kit, new: Kit) -> None:
    """Settings that the site wrote into its policy folder itself outlive a new certificate."""
    for path in old.local.glob("silograph*"):
        (new.local / path.name).write_bytes(path.read_bytes())
