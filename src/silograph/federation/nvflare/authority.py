"""The coordinator's side of the kits: the root key, the server's kit, the lead's kit, and signing the sites' requests.

Provisioning is distributed: each private key is made where it is used and never travels. What is verified then: every
connection is mutual TLS below this root; a site proves with its key that it has the name it registers; a request and a
signed answer are bound by hashes and by the root's signature; every job must carry a signature made with a certificate
below this root (`require_signed_jobs`), at the server and at the sites. What is not: kits carry no `signature.json`
in this mode, so NVFlare does not notice when somebody with access to a site's disk changes that site's kit. And a
signed job does not protect the sites from a broken server: `conductor/`, the kit that submits jobs, lies there, so that
runs go on while the lead is away. Whoever has it can start processes at the sites, of the one class that they allow;
these answer nothing but what the server's key has signed, of studies that the site approved. `lead/`, which only asks
the server's desk, and `ca/`, which makes new members, lie elsewhere.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from silograph._util.documents import parse_json
from silograph._util.files import make_folder, write_bytes, writing, writing_folder
from silograph._util.naming import setting
from silograph.errors import OutputError, ProtocolError, SilosError
from silograph.federation.folders import FederationFolder
from silograph.federation.identity import public_key_fingerprint, request_fingerprint
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.members import KeysOnFile, is_revoked, was_revoked
from silograph.federation.nvflare.policy import harden_server, tidy_lead
from silograph.federation.nvflare.provisioning import package_command, participant, read_member, run_nvflare


def lead_name(name: str) -> str:
    """The user who asks the desk of a federation's server; NVFlare wants the form of an e-mail address."""
    return f"lead@{name}.silograph"


def conductor_name(name: str) -> str:
    """The user who submits the jobs of a federation."""
    return f"conductor@{name}.silograph"


def new_kits(
    folder: Path, *, name: str, server: str, port: int, sites: Sequence[str], nodes: Sequence[str] | None = None
) -> Invitation:
    """Found a federation in `folder`, and return the invitation for its sites, which is in `folder/NAME.invite`."""
    folder = folder.resolve()
    draft = Invitation(
        name=name, server=server, port=port, sites=tuple(sites), fingerprint="0" * 64,
        nodes=None if nodes is None else tuple(nodes),
    )  # fmt: skip
    if folder.exists() and any(folder.iterdir()):
        raise OutputError(f"{folder}: exists already. Choose another for the new federation ({setting('folder')}).")
    with writing_folder(folder, replace=False) as beside:
        made = FederationFolder(beside)
        invitation = _fill(made, draft)
        harden_server(made.server, FederationFolder(folder))
        tidy_lead(made.lead)
        tidy_lead(made.conductor)
        for part in (made.authority, made.server.path, made.lead.path, made.conductor.path, made.storage):
            part.chmod(0o700)
    folder.chmod(0o700)  # keys, and later the sites' graphs
    return invitation


def sign_request(folder: Path, request_zip: Path, out: Path, *, force: bool = False) -> Path:
    """Sign a site's request into `out`, which goes back to the site. `force` replaces a key that was signed before."""
    federation, request_zip, out = FederationFolder(folder.resolve()), request_zip.resolve(), out.resolve()
    site, key = read_request(folder, request_zip)
    _check_key(federation, request_zip, site, key, force=force)
    _need_root_key(federation)
    with writing(out) as beside:
        run_nvflare([_approve_command(request_zip, federation, beside)])
        signed = read_member(beside, federation.certificate(site).name)
    make_folder(federation.certificates)
    write_bytes(federation.kept_request(site), request_zip.read_bytes())
    write_bytes(federation.certificate(site), signed, durable=True)  # last: it is the key on file
    return out


def renew_site(folder: Path, site: str, out: Path) -> Path:
    """Sign the request once more that a site's certificate was made from: the same key, for longer."""
    federation = FederationFolder(folder.resolve())
    if site not in (known := read_federation(folder).sites):
        raise SilosError(f"The federation has no site {site[:80]!r}. Its sites are {', '.join(known)}.")
    _need_root_key(federation)
    if site_key(folder, site) is None:
        why = "its key was revoked" if is_revoked(federation, site) else "it was not approved yet"
        raise SilosError(f"{site}: {why}. Ask it for SITE.request.zip, then: silograph federation approve.")
    kept = federation.kept_request(site)
    if not kept.exists():
        raise SilosError(f"{kept}: is not here. Bring it back, or ask {site} for it and approve that anew.")
    return sign_request(folder, kept, out)


def renew_own(folder: Path, who: str) -> Path:
    """Sign the key of one of our own kits once more, and put the certificate in its place; that place."""
    federation = FederationFolder(folder.resolve())
    kit, kept = federation.own_kits[who], federation.kept_request(who)
    _need_root_key(federation)
    if not (kept.exists() and kit.certificate.exists()):
        raise SilosError(f"{kept if kit.certificate.exists() else kit.certificate}: is not here. Bring it back first.")
    with tempfile.TemporaryDirectory(prefix="silograph-") as work:
        signed = Path(work) / f"{who}.signed.zip"
        run_nvflare([_approve_command(kept, federation, signed)])
        name = parse_json(read_member(kept, "request.json"))["name"]
        certificate = read_member(signed, f"{name}.crt")
    if public_key_fingerprint(certificate) != public_key_fingerprint(kit.certificate.read_bytes()):
        raise ProtocolError(f"{kept}: was made for another key than {kit.certificate}. Bring back the right one.")
    write_bytes(kit.certificate, certificate, durable=True)
    return kit.certificate


def read_request(folder: Path, request_zip: Path) -> tuple[str, str]:
    """The site's name and its key's fingerprint; NVFlare then checks that both agree with all else in the file."""
    if not request_zip.exists():
        raise SilosError(f"{request_zip}: is not there. Give the file SITE.request.zip that the site has sent.")
    invitation = read_federation(folder)
    try:
        request = parse_json(read_member(request_zip, "request.json"))
        site, kind, project = request["name"], request["kind"], request["project"]
    except (ValueError, KeyError) as error:
        raise ProtocolError(
            f"{request_zip}: cannot be read, or is no site's request. Ask the site for SITE.request.zip."
        ) from error
    if project != invitation.name:
        raise SilosError(f"{request_zip}: asks to join {project!r}, this federation is {invitation.name!r}.")
    if kind != "site" or request.get("cert_type") != "client":  # else somebody could ask to be a lead or the server
        raise SilosError(f"{request_zip}: asks for the rights of a {kind!r}; sites only are signed.")
    if site not in invitation.sites:
        raise SilosError(
            f"{request_zip}: the site {site!r} is not of this federation, whose sites are "
            f"{', '.join(invitation.sites)}."
        )
    try:
        return site, request_fingerprint(read_member(request_zip, f"{site}.csr"))
    except ProtocolError as error:
        raise ProtocolError(f"{request_zip}: its signing request is damaged. Ask the site to make it again.") from error


def site_key(folder: Path, site: str) -> str | None:
    """The fingerprint of the key on file for a site. A renewed certificate has the same."""
    return KeysOnFile(FederationFolder(folder))(site)


def site_keys(folder: Path) -> dict[str, str]:
    """The fingerprints of all sites that were signed, and not revoked since; of a damaged certificate there is none."""
    found = {}
    for site in read_federation(folder).sites:
        with suppress(ProtocolError):  # which the warnings of certificates tell
            found[site] = site_key(folder, site)
    return {site: key for site, key in found.items() if key is not None}


def read_federation(folder: Path) -> Invitation:
    """The federation founded in `folder`."""
    path = FederationFolder(folder).about
    if not path.exists():
        raise SilosError(f"{folder}: holds no federation. Found one first: silograph federation new.")
    return read_invitation(path)


def _check_key(federation: FederationFolder, request_zip: Path, site: str, key: str, *, force: bool) -> None:
    """Raise unless this key may be the one on file for the site."""
    try:
        before = site_key(federation.path, site)
    except ProtocolError:
        before = "damaged"  # whichever it was
    if was_revoked(federation, key):
        raise SilosError(
            f"{request_zip}: has a key that was revoked, which is signed no more. Ask {site} to make a new one: there, "
            "move key/ and kit/ away, then silograph site request."
        )
    if (before not in (None, key) or (before is None and is_revoked(federation, site))) and not force:
        raise SilosError(
            f"{request_zip}: the site {site!r} was signed before, for another key. Ask the site, by a second way, "
            "whether it made a new key; if it did, sign with --force. From then on only the new one is believed."
        )
    same = [other for other, known in site_keys(federation.path).items() if known == key and other != site]
    if same:
        raise SilosError(
            f"{request_zip}: has the key of {same[0]!r}. Each site makes its own: ask {site!r} for another."
        )


def _need_root_key(federation: FederationFolder) -> None:
    if not federation.root_key.exists():
        raise SilosError(
            f"{federation.authority}: the root key is not here. Do this where it is kept, then bring the folder sites/ "
            "here; or put the folder ca/ back for as long as you need it."
        )


def _fill(made: FederationFolder, draft: Invitation) -> Invitation:
    make_folder(made.authority)
    endpoint = {"host": draft.server, "fed_learn_port": draft.port, "admin_port": draft.port}
    profile = {"name": draft.name, "scheme": "grpc", "connection_security": "mtls", "server": endpoint}
    made.profile.write_text(json.dumps(profile), encoding="utf-8")  # JSON is YAML
    report = run_nvflare([["cert", "init", "--profile", str(made.profile), "-o", str(made.authority)]])[0]
    fingerprint = str(report["rootca_fingerprint_sha256"]).removeprefix("SHA256:").replace(":", "").lower()
    invitation = replace(draft, fingerprint=fingerprint)
    _make_own_kits(made, invitation)
    for path in (made.about, made.invitation(draft.name)):
        write_invitation(path, invitation)
    for part in (made.certificates, made.jobs, made.snapshots, made.log.parent):
        make_folder(part)
    return invitation


def _make_own_kits(made: FederationFolder, invitation: Invitation) -> None:
    """Make the kits of server, lead and conductor, by the same steps as a site's; only that both ends are here."""
    work = made.path / "work"
    make_folder(work)
    ports = {"fed_learn_port": invitation.port, "admin_port": invitation.port}
    server: dict[str, object] = {"name": invitation.server, "type": "server", **ports}
    lead: dict[str, object] = {"name": lead_name(invitation.name), "type": "admin", "role": "lead"}
    entries = (server, lead, {**lead, "name": conductor_name(invitation.name)})
    commands: list[list[str]] = []
    for entry in entries:
        definition = participant(work, invitation.name, entry)
        commands += _own_kit_commands(made, work, definition, str(entry["name"]), invitation.fingerprint)
    reports = run_nvflare(commands)
    for (who, kit), report, entry in zip(made.own_kits.items(), reports[2::3], entries, strict=True):
        Path(report["output_dir"]).replace(kit.path)
        (work / str(entry["name"]) / f"{entry['name']}.request.zip").replace(made.kept_request(who))
    shutil.rmtree(work)


def _own_kit_commands(
    made: FederationFolder, work: Path, definition: Path, name: str, fingerprint: str
) -> list[list[str]]:
    request, signed = work / name, work / f"{name}.signed.zip"
    return [
        ["cert", "request", "-p", str(definition), "--out", str(request)],
        _approve_command(request / f"{name}.request.zip", made, signed),
        package_command(signed, request, fingerprint, work / "kits"),
    ]


def _approve_command(request_zip: Path, federation: FederationFolder, out: Path) -> list[str]:
    options = ["-c", str(federation.authority), "--profile", str(federation.profile), "--out", str(out), "--force"]
    return ["cert", "approve", str(request_zip), *options]
