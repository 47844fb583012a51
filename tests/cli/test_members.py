"""The commands that renew, revoke, add and remove, and what commands say of certificates that end."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("nvflare")

from cryptography.hazmat.primitives.serialization import Encoding

from silograph.audit.consortium import make_identity
from silograph.cli.app import app
from silograph.federation.certificates import certificate_ends
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.members import notices
from silograph.federation.nvflare import hosting
from silograph.federation.nvflare.authority import new_kits, site_key
from silograph.federation.nvflare.kits import install_kit, make_request
from silograph.federation.site.pins import Pins
from testing.consortium import write_table

SETTINGS = 'name = "oslo"\nfederation = "brains"\nserver = "localhost"\ndata = "oslo.csv"\ndrop = ["age"]\n'


def silograph(*arguments: str | Path, code: int = 0, says: str = "") -> str:
    """Run a command in this process; what it said, on whichever stream, on one line."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    said = " ".join(result.output.split())
    assert result.exit_code == code, f"{result.exit_code}: {result.output} {result.exception!r}"
    assert says in said, result.output
    return said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation whose site oslo has joined, with a column to drop; lima has not asked yet."""
    root = tmp_path_factory.mktemp("made")
    invitation = new_kits(root / "brains", name="brains", server="localhost", port=8002, sites=["oslo", "lima"])
    request = make_request(root / "oslo", invitation, "oslo")
    said = silograph("federation", "approve", request, "--folder", root / "brains", "--out", root / "oslo.signed.zip")
    assert "site renew oslo.signed.zip" in said
    install_kit(root / "oslo", root / "oslo.signed.zip", invitation)
    write_table(root / "oslo" / "oslo.csv", 0)
    (root / "oslo" / "site.toml").write_text(SETTINGS)
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it as the working folder, for one test to change."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def let_end(certificate: Path, days: float) -> None:
    """Put a certificate in place that ends so many days from now."""
    certificate.write_bytes(make_identity("any", days=(-1, days))[0].public_bytes(Encoding.PEM))


def test_a_site_is_renewed_and_asked_for_no_data_again(here: Path) -> None:
    kit = SiteFolder(here / "oslo").kit
    before, ends = kit.certificate.read_bytes(), certificate_ends(kit.certificate)
    said = silograph("federation", "renew", "oslo", says="There: silograph site renew oslo.signed.zip")
    assert "its key is as before" in said
    (here / "oslo.signed.zip").replace(here / "oslo.signed (1).zip")
    said = silograph("site", "renew", "oslo.signed (1).zip", says=f"Renewed: the certificate ends on {ends:%Y-%m-%d}")
    assert "started anew" not in said  # it does not run
    assert kit.certificate.read_bytes() != before
    assert (here / "oslo" / "site.toml").read_text() == SETTINGS


def test_a_site_that_has_not_joined_has_nothing_to_renew(here: Path) -> None:
    (here / "oslo" / "site.toml").unlink()
    silograph("site", "renew", "oslo.signed.zip", code=1, says="has not joined yet")
    silograph("site", "renew", "brains/federation.json", code=1, says="is no signed request")


@pytest.mark.parametrize(
    ("who", "file"), [("server", "server/startup/server.crt"), ("lead", "lead/startup/client.crt")]
)
def test_the_server_and_the_lead_are_renewed_in_place(here: Path, monkeypatch, who: str, file: str) -> None:
    monkeypatch.setattr(hosting, "running", lambda folder: {"host": 1})
    before = (here / "brains" / file).read_bytes()
    said = silograph("federation", "renew", who, says=f"copy it there: brains/{file}")
    assert ("The server takes it when it is started anew" in said) == (who == "server")
    assert (here / "brains" / file).read_bytes() != before


def test_without_the_root_key_nothing_is_signed_and_keys_are_still_revoked(here: Path) -> None:
    (here / "brains" / "ca").rename(here / "ca")
    for who in ("oslo", "server"):
        silograph("federation", "renew", who, code=1, says="the root key is not here")
    silograph("federation", "revoke", "oslo", says="believed no more, from the next message on")
    assert site_key(here / "brains", "oslo") is None


def test_a_revoked_site_comes_back_with_a_new_key_and_its_settings(here: Path) -> None:
    old = site_key(here / "brains", "oslo")
    assert shown_fingerprint(str(old)) in silograph("federation", "revoke", "oslo")
    silograph("federation", "renew", "oslo", code=1, says="its key was revoked")
    silograph("federation", "approve", "oslo/oslo.request.zip", "--force", code=1, says="a key that was revoked")
    assert "The key of oslo was revoked: it cannot connect" in notices(FederationFolder(here / "brains"))[-1]
    silograph(
        "site", "request", "brains/brains.invite", "--site", "oslo", code=1, says="stolen or revoked: stop the site"
    )
    for folder in ("key", "kit"):
        (here / "oslo" / folder).rename(here / folder)
    silograph("site", "request", "brains/brains.invite", "--site", "oslo", says="comes back: silograph site renew oslo")
    silograph("federation", "approve", "oslo/oslo.request.zip", code=1, says="sign with --force")
    silograph("federation", "approve", "oslo/oslo.request.zip", "--force")
    said = silograph("site", "renew", "oslo.signed.zip", says="The other sites pin it with --replace")
    new = site_key(here / "brains", "oslo")
    assert new != old
    assert shown_fingerprint(str(new)) in said
    assert notices(FederationFolder(here / "brains")) == []
    assert (here / "oslo" / "site.toml").read_text() == SETTINGS


def test_sites_are_added_and_removed_by_name(here: Path) -> None:
    said = silograph("federation", "add-site", "bonn", "kyoto", says="The sites of brains: oslo, lima, bonn, kyoto.")
    assert "site request brains.invite --site bonn|kyoto" in said
    silograph("site", "request", "brains/brains.invite", "--site", "bonn")
    silograph("federation", "approve", "bonn/bonn.request.zip")
    silograph("federation", "remove-site", "oslo", "lima", says="The sites left: bonn, kyoto.")
    assert site_key(here / "brains", "oslo") is None
    silograph(
        "federation", "approve", "oslo/oslo.request.zip", code=1, says="the site 'oslo' is not of this federation"
    )
    for name in ("server", "lead", "Bonn"):
        silograph("federation", "add-site", name, code=2, says="site name" if name == "Bonn" else "cannot be called")
    silograph("federation", "remove-site", "paris", code=2, says="no site 'paris'. Its sites are bonn, kyoto.")


def test_a_site_that_came_later_is_pinned_once_people_say_that_they_know_it(here: Path) -> None:
    pin = ["site", "pin", "bonn", "ab" * 32]
    silograph(*pin, code=2, says="was not invited together with 'bonn', but with oslo, lima. If it joined later")
    silograph(*pin, "--new", says="Pinned bonn")
    assert Pins(here / "oslo").get("bonn") == "ab" * 32
    silograph("site", "pin", says="bonn: joined later; pinned by")
    silograph("site", "pin", "bonn", "cd" * 32, "--replace", says="Pinned bonn")  # known by now
    assert '"bonn": "cdcd' in silograph("site", "pin", "--json")


def test_a_study_that_brings_a_newcomer_says_so_before_it_is_approved(here: Path) -> None:
    nodes = '", "'.join(f"node {k}" for k in range(8))
    (here / "oslo" / "site.toml").write_text(SETTINGS.replace('drop = ["age"]\n', ""))
    (here / "study.toml").write_text(
        f'name = "later"\nnodes = ["{nodes}"]\nsites = ["bonn", "lima", "oslo"]\n[learn]\nmethod = "exact"\n'
    )
    approve = ["site", "approve", "study.toml", "--yes"]
    silograph(*approve, says="LOOK TWICE: bonn joined later than this site, and is not pinned here.")
    silograph("site", "pin", "bonn", "ab" * 32, "--new")
    assert "joined later" not in silograph(*approve)


def test_who_starts_is_told_of_certificates_that_end(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "oslo" / "site.toml").write_text(SETTINGS.replace('drop = ["age"]\n', ""))
    for host in ("host_server", "host_site"):
        monkeypatch.setattr(hosting, host, lambda folder, say: say("hosted"))
    start = ("federation", "start"), ("site", "start", "--folder", "oslo")
    for words in start:
        assert "Warning" not in silograph(*words, says="hosted")
    let_end(FederationFolder(here / "brains").certificate("oslo"), 30.5)
    let_end(SiteFolder(here / "oslo").kit.certificate, -1)
    federation, site = (silograph(*words, says="hosted") for words in start)
    assert "Warning: The certificate of the site 'oslo' ends on " in federation
    assert "in 30 days. Renew it: silograph federation renew oslo." in federation
    assert "Warning: This site's certificate ended on " in site
