"""Which sites are of a federation, and whose key is whose.

A site is who holds the key on file, whatever else the root has signed for its name.

    sites/SITE.crt                 the certificate that was signed last: its key is the one on file
    sites/SITE.request.zip         what it was signed from, to sign the same key again
    sites/revoked/SITE.KEY.crt     a key that is believed no more, whatever lies in sites/

The files are looked at for every message, so that a change holds at once. A revoked key stays revoked also where an
older copy of `sites/` is copied over it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from silograph._util.files import make_folder, write_bytes
from silograph.errors import ParameterError, ProtocolError, SilosError
from silograph.federation.certificates import federation_warnings
from silograph.federation.folders import FederationFolder
from silograph.federation.identity import public_key_fingerprint
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.names import OWN_NAMES, SITE_NAME, check_site_name


class KeysOnFile:
    """The key of each site, read again whenever its file has changed."""

    def __init__(self, federation: FederationFolder) -> None:
        self._federation = federation
        self._read: dict[str, tuple[tuple[int, int, int], str]] = {}  # site → what its file was like, and its key

    def __call__(self, site: str) -> str | None:
        """The fingerprint of a site's key; none of a site that was never signed, or whose key was revoked."""
        path = self._federation.certificate(site)
        if not SITE_NAME.fullmatch(site):
            return None
        try:
            status = path.stat()
        except OSError:
            return None
        like = (status.st_ino, status.st_mtime_ns, status.st_size)
        before = self._read.get(site)
        key = before[1] if before is not None and before[0] == like else _key_in(path)
        self._read[site] = (like, key)
        return None if self._federation.revoked_key(site, key).exists() else key

    def objection(self, site: str, key: str) -> str | None:
        """What is wrong with a site that has this key; nothing if it is the one on file."""
        try:
            on_file = self(site)
        except ProtocolError:
            return "its certificate on file is damaged"
        if on_file == key:
            return None
        if self._federation.revoked_key(site, key).exists():
            return "its key was revoked"
        if on_file is None:
            return "no key of it is on file; if it was approved elsewhere, bring the folder sites/ here"
        return "another key of it is on file; if a new one was approved elsewhere, bring the folder sites/ here"


def is_revoked(federation: FederationFolder, site: str) -> bool:
    """Whether a site's key was revoked, and no other one signed since."""
    return any(federation.revoked.glob(f"{site}.*.crt")) and KeysOnFile(federation)(site) is None


def was_revoked(federation: FederationFolder, key: str) -> bool:
    """Whether this key was revoked, of whichever site it was."""
    return any(federation.revoked.glob(f"*.{key}.crt"))


def revoke_key(federation: FederationFolder, site: str) -> str:
    """Believe the key on file for a site no more; its fingerprint. It holds from the next message on."""
    if site in OWN_NAMES:
        raise SilosError(
            f"The {site}'s key cannot be revoked: every site trusts it by the root certificate. If it was stolen, "
            "found a new federation, and tell all sites to leave this one."
        )
    key = KeysOnFile(federation)(site)
    if key is None:
        why = "was revoked already" if is_revoked(federation, site) else "was not approved here"
        raise SilosError(f"The site {site!r} {why}: there is no key to revoke.")
    certificate = federation.certificate(site)
    make_folder(federation.revoked)
    write_bytes(federation.revoked_key(site, key), certificate.read_bytes(), durable=True)  # from here on it holds
    certificate.unlink()
    federation.kept_request(site).unlink(missing_ok=True)
    return key


def add_sites(federation: FederationFolder, names: Sequence[str]) -> Invitation:
    """Invite further sites; those that are there go on as they are."""
    invitation = read_invitation(federation.about)
    for name in names:
        check_site_name(name)
    if known := [name for name in names if name in invitation.sites]:
        raise ParameterError(f"{', '.join(known)}: of this federation already. Give the new sites only.")
    return _write_sites(federation, invitation, (*invitation.sites, *names))


def remove_site(federation: FederationFolder, name: str) -> Invitation:
    """Take a site off the list, and believe its key no more."""
    invitation = read_invitation(federation.about)
    if name not in invitation.sites:
        raise ParameterError(f"The federation has no site {name[:80]!r}. Its sites are {', '.join(invitation.sites)}.")
    if len(invitation.sites) == 1:
        raise ParameterError(f"{name}: is the only site. A federation has one at least.")
    if KeysOnFile(federation)(name) is not None:
        revoke_key(federation, name)
    return _write_sites(federation, invitation, tuple(site for site in invitation.sites if site != name))


def notices(federation: FederationFolder) -> list[str]:
    """What to say of the members of a federation: certificates that end, keys that were revoked."""
    known = read_invitation(federation.about).sites
    sites = sorted({path.name.split(".")[0] for path in federation.revoked.glob("*.crt")} & set(known))
    return [
        *federation_warnings(federation.path),
        *(
            f"The key of {site} was revoked: it cannot connect until a new one is signed for it."
            for site in sites
            if is_revoked(federation, site)
        ),
    ]


def _write_sites(federation: FederationFolder, invitation: Invitation, sites: tuple[str, ...]) -> Invitation:
    changed = replace(invitation, sites=sites)
    for path in (federation.about, federation.invitation(invitation.name)):
        write_invitation(path, changed)
    return changed


def _key_in(path: Path) -> str:
    try:
        return public_key_fingerprint(path.read_bytes())
    except (OSError, ProtocolError) as error:
        raise ProtocolError(f"{path}: is damaged. Put it back, or sign the site's request again.") from error
