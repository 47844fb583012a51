"""Kits: keys stay where they are made, and only what fits together is signed and installed."""

import json
import shutil
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("nvflare")

from cryptography import x509

from silograph.errors import OutputError, ProtocolError, SilosError
from silograph.federation.folders import FederationFolder
from silograph.federation.invitation import Invitation, read_invitation
from silograph.federation.nvflare.authority import conductor_name, lead_name, new_kits, read_federation, sign_request
from silograph.federation.nvflare.kits import install_kit, make_request, site_invitation, site_name
from silograph.federation.nvflare.policy import SERVER_CLASSES, SITE_CLASSES, place_storage


class Made(NamedTuple):
    folder: Path
    north: Path
    south: Path
    invitation: Invitation


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A federation whose two sites have asked; the north is signed and installed, the south is not."""
    root = tmp_path_factory.mktemp("kits")
    invitation = new_kits(root / "fed", name="brains", server="localhost", port=8002, sites=["north", "south"])
    with ThreadPoolExecutor() as pool:
        for asked in [pool.submit(make_request, root / site, invitation, site) for site in invitation.sites]:
            asked.result()
    signed = sign_request(root / "fed", root / "north" / "north.request.zip", root / "north.signed.zip")
    install_kit(root / "north", signed, invitation)
    return Made(root / "fed", root / "north", root / "south", invitation)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def test_every_private_key_is_for_its_owner_only(made: Made) -> None:
    keys = [path for folder in (made.folder, made.north, made.south) for path in folder.rglob("*.key")]
    assert len(keys) == 7  # root, server, lead, conductor; north's and its kit's; south's
    assert {mode(path) for path in keys} == {0o600}
    assert {mode(path.parent) for path in keys if path.parent.name in ("ca", "key")} == {0o700}
    kits = (made.folder / "server", made.folder / "lead", made.folder / "conductor", made.north / "kit")
    assert {mode(kit) for kit in kits} == {0o700}


def test_no_private_key_travels(made: Made) -> None:
    for path in (made.south / "south.request.zip", made.folder.parent / "north.signed.zip"):
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        assert not any(b"PRIVATE KEY" in data for data in content.values())
        assert not any(name.endswith(".key") for name in content)
    with zipfile.ZipFile(made.south / "south.request.zip") as archive:
        assert sorted(archive.namelist()) == ["request.json", "site.yaml", "south.csr"]


def test_the_invitation_is_that_of_the_root_certificate(made: Made) -> None:
    root = x509.load_pem_x509_certificate((made.folder / "ca" / "rootCA.pem").read_bytes())
    assert made.invitation.fingerprint == root.fingerprint(root.signature_hash_algorithm).hex()
    assert read_invitation(made.folder / "brains.invite") == read_federation(made.folder) == made.invitation
    assert site_invitation(made.north) == made.invitation
    assert site_name(made.north) == "north"


def test_a_kit_allows_our_classes_and_nothing_else(made: Made) -> None:
    for kit, classes in ((made.north / "kit", SITE_CLASSES), (made.folder / "server", SERVER_CLASSES)):
        resources = read(kit / "local" / "resources.json")
        assert resources["class_allow_list"] == classes
        assert resources["class_list_enforcement_mode"] == "enforce"
        assert not list(kit.rglob("*.sh"))
        assert not list(kit.rglob("*.default"))
    site = read(made.north / "kit" / "local" / "resources.json")
    assert site["allow_log_streaming"] is False
    assert not any("log" in component["id"] for component in site["components"])
    assert read(made.north / "kit" / "startup" / "fed_client.json")["require_signed_jobs"] is True


def test_nobody_may_bring_code_or_open_a_shell(made: Made) -> None:
    expected = {
        made.folder / "server": {"submit_job", "manage_job", "view"},
        made.north / "kit": {"submit_job", "manage_job"},
    }
    for kit, rights in expected.items():
        permissions = read(kit / "local" / "authorization.json")["permissions"]
        for given in permissions.values():
            assert {given[name] for name in ("byoc", "shell_commands", "operate", "clone_job")} == {"none"}
        allowed = {(role, name) for role, given in permissions.items() for name in given if given[name] != "none"}
        assert allowed == {("lead", name) for name in rights}


@pytest.mark.parametrize(("kit", "name"), [("lead", lead_name("brains")), ("conductor", conductor_name("brains"))])
def test_lead_and_conductor_have_the_role_of_those_who_submit(made: Made, kit: str, name: str) -> None:
    certificate = x509.load_pem_x509_certificate((made.folder / kit / "startup" / "client.crt").read_bytes())
    subject = {attribute.oid._name: attribute.value for attribute in certificate.subject}
    assert subject["commonName"] == name
    assert subject["unstructuredName"] == "lead"


def test_the_jobs_of_a_moved_federation_are_found_again(made: Made, tmp_path: Path) -> None:
    kit = tmp_path / "moved" / "server"
    shutil.copytree(made.folder / "server", kit)
    assert str(made.folder / "storage" / "jobs") in (kit / "local" / "resources.json").read_text()
    place_storage(FederationFolder(tmp_path / "moved"))
    text = (kit / "local" / "resources.json").read_text()
    assert str(made.folder) not in text
    assert str(tmp_path / "moved" / "storage" / "jobs") in text
    assert str(tmp_path / "moved" / "storage" / "snapshots") in text


def test_a_second_federation_does_not_overwrite_the_first(made: Made) -> None:
    with pytest.raises(OutputError, match="exists already"):
        new_kits(made.folder, name="brains", server="localhost", port=8002, sites=["north"])


def test_a_second_request_does_not_replace_the_key(made: Made) -> None:
    with pytest.raises(OutputError, match="has a key already"):
        make_request(made.south, made.invitation, "south")


def test_a_site_that_was_not_invited_cannot_ask(made: Made, tmp_path: Path) -> None:
    with pytest.raises(SilosError, match=r"no site 'east'.*north, south"):
        make_request(tmp_path, made.invitation, "east")


def repacked(source: Path, out: Path, **changes: str) -> Path:
    """The same request with other claims in its metadata."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "request.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
            new.writestr(name, data)
    return out


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "east"}, "not of this federation"),
        ({"project": "hearts"}, "'hearts'"),
        ({"kind": "user", "cert_type": "lead"}, "sites only"),
        ({"cert_type": "server"}, "sites only"),
    ],
)
def test_a_request_that_claims_more_is_not_signed(
    made: Made, tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    request = repacked(made.south / "south.request.zip", tmp_path / "request.zip", **changes)
    with pytest.raises(SilosError, match=reason):
        sign_request(made.folder, request, tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def test_what_is_no_request_is_not_signed(made: Made, tmp_path: Path) -> None:
    request = tmp_path / "request.zip"
    request.write_bytes(b"nothing")
    with pytest.raises(ProtocolError, match="is no site's request"):
        sign_request(made.folder, request, tmp_path / "out.zip")


def test_a_signed_site_gets_no_second_key_by_accident(made: Made, tmp_path: Path) -> None:
    request = make_request(tmp_path / "north", made.invitation, "north")
    with pytest.raises(SilosError, match="signed before, for another key"):
        sign_request(made.folder, request, tmp_path / "out.zip")
    before = (made.folder / "sites" / "north.crt").read_bytes()
    sign_request(made.folder, made.north / "north.request.zip", tmp_path / "again.zip")  # the same key: a new date
    sign_request(made.folder, request, tmp_path / "out.zip", force=True)
    assert (made.folder / "sites" / "north.crt").read_bytes() != before


def test_a_kit_for_another_site_is_not_installed(made: Made) -> None:
    with pytest.raises(SilosError, match="signed for the site 'north', the key here is of 'south'"):
        install_kit(made.south, made.folder.parent / "north.signed.zip", made.invitation)
    assert not (made.south / "kit").exists()


def test_a_kit_below_another_root_is_not_installed(made: Made) -> None:
    other = Invitation(name="brains", server="localhost", port=8002, sites=("north",), fingerprint="0" * 64)
    with pytest.raises(SilosError, match="another root certificate"):
        install_kit(made.north, made.folder.parent / "north.signed.zip", other)


def test_a_new_kit_keeps_what_the_site_set_itself(made: Made) -> None:
    own = made.north / "kit" / "local" / "silograph.json"
    own.write_text('{"data": "signals.csv"}')
    install_kit(made.north, made.folder.parent / "north.signed.zip", made.invitation)
    assert own.read_text() == '{"data": "signals.csv"}'


def test_a_folder_without_a_key_is_no_site(tmp_path: Path) -> None:
    with pytest.raises(SilosError, match="silograph site request"):
        site_name(tmp_path)
    with pytest.raises(SilosError, match="silograph site request"):
        site_invitation(tmp_path)
    with pytest.raises(SilosError, match="silograph federation new"):
        read_federation(tmp_path)
