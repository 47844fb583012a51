"""When the certificates of a federation and of a site end, and what to say of it in time.

The root certificate lives for ten years, all others for three, and never longer than the root. The root is what every
site knows the federation by, so it cannot be renewed.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from silograph.errors import ProtocolError
from silograph.federation.folders import FederationFolder, SiteFolder

WARNED_BEFORE = timedelta(days=60)
ROOT = "The federation's root certificate"
NEW_FEDERATION = "It cannot be renewed: found a new federation in time, and let its sites join that"
ASK_COORDINATOR = "ask the coordinator for SITE.signed.zip, then: silograph site renew SITE.signed.zip"

Named = tuple[str, Path, str]  # what it is, the certificate, how to renew it


def certificate_ends(path: Path) -> datetime:
    """When the certificate in a PEM file ends."""
    from cryptography import x509  # of the extra nvflare: the command line is there without

    try:
        return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as error:
        raise ProtocolError(f"{path}: the certificate cannot be read. Put it back, or renew it.") from error


def expiry_warning(what: str, ends: datetime, now: datetime, renew_command: str) -> str | None:
    """What to say of a certificate that ends within 60 days, or ended; nothing of another."""
    if ends - now > WARNED_BEFORE:
        return None
    if ends <= now:
        return f"{what} ended on {ends:%Y-%m-%d}: nobody believes it any more. {_cure(renew_command)}"
    days = (ends - now).days
    when = f"in {days} days" if days > 1 else "within two days"
    return f"{what} ends on {ends:%Y-%m-%d}, {when}. {_cure(renew_command)}"


def federation_warnings(folder: Path, now: datetime | None = None) -> list[str]:
    """What to say of the certificates in a federation's folder: the root's, its own kits', the sites'."""
    federation = FederationFolder(folder)
    roots = [federation.server.root_certificate, federation.root_certificate]
    own: list[Named] = [
        (f"The {who}'s certificate", kit.certificate, f"silograph federation renew {who}")
        for who, kit in federation.own_kits.items()
    ]
    sites: list[Named] = [
        (f"The certificate of the site {path.stem!r}", path, f"silograph federation renew {path.stem}")
        for path in sorted(federation.certificates.glob("*.crt"))
    ]
    return _warnings(roots, [*own, *sites], now or datetime.now(UTC))


def site_warnings(folder: Path, now: datetime | None = None) -> list[str]:
    """What to say of the certificates in a site's folder, its own and the root's; nothing before it has joined."""
    kit = SiteFolder(folder).kit
    own = ("This site's certificate", kit.certificate, ASK_COORDINATOR)
    return _warnings([kit.root_certificate], [own], now or datetime.now(UTC))


def _warnings(roots: Iterable[Path], named: Iterable[Named], now: datetime) -> list[str]:
    """Of those that are there. One that lives as long as the root is not renewed by renewing it."""
    root = next((certificate_ends(path) for path in roots if path.exists()), None)
    found = [expiry_warning(ROOT, root, now, NEW_FEDERATION)] if root else []
    for what, path, renew in named:
        try:
            if path.exists() and (ends := certificate_ends(path)) != root:
                found.append(expiry_warning(what, ends, now, renew))
        except ProtocolError as error:  # of one: no reason to tell nothing of the others, or not to start
            found.append(str(error))
    return [warning for warning in found if warning]


def _cure(renew: str) -> str:
    return f"Renew it: {renew}." if renew.startswith("silograph") else f"{renew[:1].upper()}{renew[1:]}."
