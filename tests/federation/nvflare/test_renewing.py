"""Certificates are renewed, keys are not; and the root key may be on another machine."""

import json
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

pytest.importorskip("nvflare")

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from silograph.audit.consortium import make_identity
from silograph.cli.app import app
from silograph.errors import SilographError, SilosError
from silograph.federation.folders import FederationFolder, Kit, SiteFolder
from silograph.federation.identity import public_key_fingerprint, read_signer, read_trust
from silograph.federation.invitation import read_invitation, write_invitation
from silograph.federation.members import KeysOnFile, revoke_key
from silograph.federation.names import OWN_NAMES
from silograph.federation.nvflare import kits
from silograph.federation.nvflare.authority import new_kits, read_federation, renew_own, renew_site, sign_request
from silograph.federation.nvflare.kits import install_kit, make_request, renew_kit, signed_for, site_invitation
from silograph.federation.site.address import kit_address, take_address, write_kit_address


class Made(NamedTuple):
    federation: FederationFolder
    site: SiteFolder
    first: Path  # the answer to the site's request


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation, and its site oslo, which has joined by an answer that a mail program gave another name."""
    root = tmp_path_factory.mktemp("founded")
    invitation = new_kits(root / "fed", name="brains", server="localhost", port=8002, sites=["oslo", "lima"])
    request = make_request(root / "oslo", invitation, "oslo").replace(root / "my oslo.request (2).zip")
    signed = sign_request(root / "fed", request, root / "oslo.signed.zip").replace(root / "oslo.signed (1).zip")
    install_kit(root / "oslo", signed, invitation)
    time.sleep(1.1)  # certificates count whole seconds: one that is renewed now is the newer one
    return root


@pytest.fixture
def made(founded: Path, tmp_path: Path) -> Made:
    """A copy of it for one test to change."""
    shutil.copytree(founded, tmp_path / "here")
    root = tmp_path / "here"
    return Made(FederationFolder(root / "fed"), SiteFolder(root / "oslo"), root / "oslo.signed (1).zip")


def certificate_of(kit: Kit) -> x509.Certificate:
    return x509.load_pem_x509_certificate(kit.certificate.read_bytes())


def all_but(folder: Path, *names: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name not in names}


def renew(made: Made) -> bool:
    """As the coordinator and the site do it."""
    signed = renew_site(made.federation.path, "oslo", made.federation.path.parent / "again (3).zip")
    return renew_kit(made.site.path, signed, site_invitation(made.site.path))


def test_a_name_that_a_mail_program_made_is_as_good(made: Made) -> None:
    assert signed_for(made.first) == "oslo"
    assert made.site.kit.certificate.exists()


def test_a_site_gets_a_new_certificate_and_nothing_else_changes(made: Made) -> None:
    (made.site.kit.local / "resources.json").write_text('{"by": "the site itself"}')
    before, files = certificate_of(made.site.kit), all_but(made.site.path, "client.crt")
    assert renew(made)
    after = certificate_of(made.site.kit)
    assert after.serial_number != before.serial_number
    assert after.not_valid_after_utc > before.not_valid_after_utc
    assert after.public_key() == before.public_key()
    assert after.subject == before.subject
    assert all_but(made.site.path, "client.crt") == files
    assert made.federation.certificate("oslo").read_bytes() == made.site.kit.certificate.read_bytes()
    read_signer(made.site.kit.certificate, made.site.kit.key)


def test_an_older_answer_takes_no_time_away(made: Made) -> None:
    assert renew(made)
    later = certificate_of(made.site.kit)
    with pytest.raises(SilosError, match="This is an older answer"):
        renew_kit(made.site.path, made.first, site_invitation(made.site.path))
    assert certificate_of(made.site.kit) == later


def test_an_answer_that_was_altered_is_not_installed(made: Made, tmp_path: Path) -> None:
    """Whoever is between coordinator and site has no key of the root's."""
    signed = renew_site(made.federation.path, "oslo", tmp_path / "oslo.signed.zip")
    key = read_signer(made.site.kit.certificate, made.site.kit.key).key
    forged = make_identity("oslo", key=key)[0].public_bytes(Encoding.PEM)
    with zipfile.ZipFile(signed) as old, zipfile.ZipFile(tmp_path / "forged.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, forged if name == "oslo.crt" else old.read(name))
    before = all_but(made.site.path)
    with pytest.raises(SilographError):
        renew_kit(made.site.path, tmp_path / "forged.zip", site_invitation(made.site.path))
    assert all_but(made.site.path) == before


def test_a_site_with_a_new_key_gets_a_new_kit_once_it_has_stopped(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    invitation, old = site_invitation(made.site.path), KeysOnFile(made.federation)("oslo")
    revoke_key(made.federation, "oslo")
    with pytest.raises(SilosError, match="its key was revoked"):
        renew_site(made.federation.path, "oslo", made.first)
    shutil.rmtree(made.site.key)
    request = make_request(made.site.path, invitation, "oslo")
    with pytest.raises(SilosError, match="signed before, for another key"):
        sign_request(made.federation.path, request, made.first)
    signed = sign_request(made.federation.path, request, made.first, force=True)
    monkeypatch.setattr(kits, "running", lambda folder: {"host": 1})
    with pytest.raises(SilosError, match="runs with its old key"):
        renew_kit(made.site.path, signed, invitation)
    monkeypatch.setattr(kits, "running", lambda folder: None)
    assert not renew_kit(made.site.path, signed, invitation)
    new = public_key_fingerprint(made.site.kit.certificate.read_bytes())
    assert new == KeysOnFile(made.federation)("oslo") != old


def test_a_revoked_key_is_never_signed_again(made: Made) -> None:
    revoke_key(made.federation, "oslo")
    with pytest.raises(SilosError, match="a key that was revoked, which is signed no more"):
        sign_request(made.federation.path, made.first.parent / "my oslo.request (2).zip", made.first, force=True)


@pytest.mark.parametrize("who", OWN_NAMES)
def test_the_server_and_the_lead_keep_their_keys(made: Made, who: str) -> None:
    kit = made.federation.own_kits[who]
    before, name = certificate_of(kit), kit.certificate.name
    files = all_but(made.federation.path, name)
    assert renew_own(made.federation.path, who) == kit.certificate
    after = certificate_of(kit)
    assert after.serial_number != before.serial_number
    assert (after.subject, after.public_key()) == (before.subject, before.public_key())
    for kind in (x509.SubjectAlternativeName, x509.ExtendedKeyUsage):
        had = [extension.value for extension in before.extensions if isinstance(extension.value, kind)]
        assert [extension.value for extension in after.extensions if isinstance(extension.value, kind)] == had
    assert all_but(made.federation.path, name) == files
    signer, trust = read_signer(kit.certificate, kit.key), read_trust(kit.root_certificate)
    assert trust.check(signer.certificate, b"0" * 32, signer.sign(b"0" * 32))


@pytest.mark.parametrize("file", ["lead.request.zip", "rootCA.key"])
def test_a_renewal_that_cannot_be_made_changes_nothing(made: Made, file: str) -> None:
    (made.federation.authority / file).unlink()
    before = all_but(made.federation.path)
    with pytest.raises(SilosError, match=file if file.endswith("zip") else "the root key is not here"):
        renew_own(made.federation.path, "lead")
    assert all_but(made.federation.path) == before


def test_a_request_of_another_key_renews_nobody(made: Made) -> None:
    """As when somebody brings back the ca/ of another backup."""
    made.federation.kept_request("oslo").write_bytes(
        make_request(made.site.path.parent / "other", read_federation(made.federation.path), "oslo").read_bytes()
    )
    before = made.federation.certificate("oslo").read_bytes()
    with pytest.raises(SilosError, match="for another key"):
        renew_site(made.federation.path, "oslo", made.first)
    assert made.federation.certificate("oslo").read_bytes() == before


@pytest.mark.parametrize(
    ("site", "why"), [("lima", "was not approved yet"), ("paris", "no site 'paris'"), ("../x", "no site '../x'")]
)
def test_who_never_joined_is_not_renewed(made: Made, site: str, why: str) -> None:
    with pytest.raises(SilosError, match=why):
        renew_site(made.federation.path, site, made.first)


def test_the_root_key_may_be_on_another_machine(made: Made) -> None:
    """The office has ca/, federation.json and sites/; the server all but ca/. What is signed there is brought here."""
    server, office = made.federation, FederationFolder(made.federation.path.parent / "office")
    office.path.mkdir()
    server.authority.rename(office.authority)
    shutil.copy(server.about, office.about)
    shutil.copytree(server.certificates, office.certificates)

    lima = make_request(made.site.path.parent / "lima", read_federation(office.path), "lima")
    for path in (server.path, office.path):
        assert read_federation(path).sites == ("oslo", "lima")
    with pytest.raises(SilosError, match="the root key is not here"):
        sign_request(server.path, lima, made.first)
    sign_request(office.path, lima, made.first)
    renew_site(office.path, "oslo", made.first)
    revoke_key(server, "oslo")  # at once, where it matters; this needs no root key
    revoke_key(office, "oslo")
    assert KeysOnFile(server)("lima") is None

    shutil.copytree(office.certificates, server.certificates, dirs_exist_ok=True)
    for folder in (server, office):
        assert KeysOnFile(folder)("lima") == public_key_fingerprint(office.certificate("lima").read_bytes())
        assert KeysOnFile(folder)("oslo") is None


def test_a_newer_invitation_moves_the_server_and_brings_no_site_along(made: Made, tmp_path: Path) -> None:
    newer, own = tmp_path / "brains.invite", read_invitation(made.site.invitation)
    write_invitation(newer, replace(own, server="coord.example.org", port=9000, sites=(*own.sites, "bonn")))
    done = CliRunner().invoke(app, ["site", "renew", str(newer), "--folder", str(made.site.path)])
    assert done.output == "The server is at coord.example.org:9000, here and in the kit.\n"
    assert kit_address(made.site.kit) == "coord.example.org:9000"
    assert json.loads(made.site.kit.config.read_text())["servers"][0]["identity"] == "coord.example.org"
    assert read_invitation(made.site.invitation) == replace(own, server="coord.example.org", port=9000)
    with pytest.raises(SilosError, match=r"the server is at localhost:8002, .* at coord.example.org:9000\. Ask"):
        renew(made)


def test_the_answer_to_another_request_of_the_site_is_named_as_such(made: Made) -> None:
    for path in (made.site.key, made.site.kit.path):
        shutil.move(path, made.site.path / f"old {path.name}")
    request = make_request(made.site.path, site_invitation(made.site.path), "oslo")
    for install in (install_kit, renew_kit):
        with pytest.raises(SilosError, match="is the answer to another request of oslo") as refusal:
            install(made.site.path, made.first, site_invitation(made.site.path))
        assert f"to approve the last one, {request}" in str(refusal.value)


def test_the_invitation_of_another_federation_moves_nothing(made: Made, tmp_path: Path) -> None:
    newer, own = tmp_path / "brains.invite", read_invitation(made.site.invitation)
    write_invitation(newer, replace(own, port=9000, fingerprint="0" * 64))
    with pytest.raises(SilosError, match="another root certificate"):
        take_address(made.site, newer)
    assert kit_address(made.site.kit) == "localhost:8002"


def test_a_renewed_kit_goes_where_the_invitation_says(made: Made) -> None:
    write_kit_address(made.site.kit, replace(read_invitation(made.site.invitation), port=9000))
    renew(made)
    assert kit_address(made.site.kit) == "localhost:8002"
