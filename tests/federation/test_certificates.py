"""Certificates end, and people hear of it sixty days before."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from silograph.audit.consortium import Authority, make_identity
from silograph.errors import ProtocolError
from silograph.federation.certificates import certificate_ends, expiry_warning, federation_warnings, site_warnings
from silograph.federation.folders import FederationFolder, SiteFolder
from testing.consortium import shared_authority

END, PEM = datetime(2027, 1, 12, tzinfo=UTC), Encoding.PEM


def put(path: Path, certificate: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(certificate)


@pytest.mark.parametrize(
    ("days_left", "said"),
    [
        (61, None),
        (60, "The thing ends on 2027-01-12, in 60 days. Renew it: silograph x."),
        (1.5, "The thing ends on 2027-01-12, within two days. Renew it: silograph x."),
        (0, "The thing ended on 2027-01-12: nobody believes it any more. Renew it: silograph x."),
        (-100, "The thing ended on 2027-01-12: nobody believes it any more. Renew it: silograph x."),
    ],
)
def test_a_warning_comes_sixty_days_before_the_end(days_left: float, said: str | None) -> None:
    assert expiry_warning("The thing", END, END - timedelta(days=days_left), "silograph x") == said


def test_the_end_is_the_certificates_own(tmp_path: Path) -> None:
    put(tmp_path / "a.crt", shared_authority().new_signer("a", days=(-1, 30)).certificate)
    left = certificate_ends(tmp_path / "a.crt") - datetime.now(UTC)
    assert timedelta(days=29.9) < left < timedelta(days=30)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.crt").write_text("nonsense")
    with pytest.raises(ProtocolError, match=r"a\.crt: the certificate cannot be read"):
        certificate_ends(tmp_path / "a.crt")


def test_a_coordinator_hears_of_each_certificate_how_to_renew_it(tmp_path: Path) -> None:
    folder, authority = FederationFolder(tmp_path), Authority()
    put(folder.root_certificate, make_identity("root", days=(-1, 3000))[0].public_bytes(PEM))
    put(folder.server.certificate, authority.new_signer("server", days=(-1, 50.5)).certificate)
    put(folder.lead.certificate, authority.new_signer("lead", days=(-1, 900)).certificate)
    put(folder.certificate("oslo"), authority.new_signer("oslo", days=(-10, -1)).certificate)
    server, oslo = federation_warnings(tmp_path)
    assert server.startswith("The server's certificate ends on ")
    assert server.endswith("in 50 days. Renew it: silograph federation renew server.")
    assert oslo.startswith("The certificate of the site 'oslo' ended on ")
    assert oslo.endswith("Renew it: silograph federation renew oslo.")
    assert federation_warnings(tmp_path, datetime.now(UTC) - timedelta(days=90)) == []


def test_a_site_hears_of_its_own_once_it_has_joined(tmp_path: Path) -> None:
    assert site_warnings(tmp_path) == []
    kit, authority = SiteFolder(tmp_path).kit, Authority()
    put(kit.root_certificate, make_identity("root", days=(-1, 3000))[0].public_bytes(PEM))
    put(kit.certificate, authority.new_signer("oslo", days=(-1, 10.5)).certificate)
    (told,) = site_warnings(tmp_path)
    assert "This site's certificate ends on " in told
    assert told.endswith("then: silograph site renew SITE.signed.zip.")


def test_nobody_is_told_to_renew_what_ends_with_the_root(tmp_path: Path) -> None:
    """A certificate never lives longer than the root; renewing it would not help."""
    kit = SiteFolder(tmp_path).kit
    root = make_identity("root", days=(-1, 10.5))[0].public_bytes(PEM)
    put(kit.root_certificate, root)
    put(kit.certificate, root)
    (told,) = site_warnings(tmp_path)
    assert told.startswith("The federation's root certificate ends on ")
    assert told.endswith("It cannot be renewed: found a new federation in time, and let its sites join that.")
