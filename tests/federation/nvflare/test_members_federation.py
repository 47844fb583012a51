"""A federation whose members change while it runs: one is renewed, one revoked, one added; studies before and after."""

import json
import shutil

import pytest

pytest.importorskip("nvflare")

from cryptography import x509

from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.members import KeysOnFile
from testing.consortium import write_table
from testing.real_federation import RealFederation, study_text
from testing.waiting import eventually

pytestmark = pytest.mark.federation


def serial(fed: RealFederation, site: str) -> int:
    """The number of the certificate that a site has installed."""
    return x509.load_pem_x509_certificate(SiteFolder(fed.home(site)).kit.certificate.read_bytes()).serial_number


def connected(fed: RealFederation) -> set[str]:
    return {one["site"] for one in fed.status()["sites"] if one["connected"]}


def hosts(fed: RealFederation) -> dict[str, int]:
    """Who hosts what, to see that nobody was started anew."""
    return {name: host.pid for name, host in fed.hosts.items()}


def server_log(fed: RealFederation) -> str:
    return FederationFolder(fed.fed).log.read_text()


def test_members_change_while_the_federation_runs(tmp_path):
    with RealFederation(tmp_path, sites=("kyoto", "lima", "oslo")) as fed:
        before = hosts(fed)
        first = fed.masked_text('method = "oneshot"\ndegree = 3')
        fed.run(first, tmp_path / "first")
        fed.assert_conforms(tmp_path / "first", first)

        # One is renewed: nobody is asked for anything, and all goes on
        was, settings = serial(fed, "kyoto"), SiteFolder(fed.home("kyoto")).settings.read_bytes()
        key = fed.keys["kyoto"]
        fed.command("federation", "renew", "kyoto", "--folder", fed.fed)
        said = fed.command("site", "renew", "kyoto.signed.zip").stdout
        assert "started anew" in said
        assert serial(fed, "kyoto") != was
        assert SiteFolder(fed.home("kyoto")).settings.read_bytes() == settings
        assert fed.keys["kyoto"] == key
        fed.run(first, tmp_path / "again")  # answers are signed with the new certificate already
        fed.stop_site("kyoto")
        fed.start_site("kyoto")
        fed.wait_connected()

        # One is revoked: its connection is dropped, and it comes in no more
        fed.command("federation", "revoke", "lima", "--folder", fed.fed)
        eventually(lambda: "refused a connection of the site 'lima': its key was revoked" in server_log(fed), 30.0)
        eventually(lambda: connected(fed) == {"kyoto", "oslo"}, 60.0, every=1.0)
        refused = fed.command(
            "federation", "run", fed.write_study(first), "--out", "no", "--folder", fed.fed, code=None
        )
        assert refused.returncode == 1
        assert "lima" in refused.stderr

        # One is added: it joins, and the others pin it
        fed.command("federation", "add-site", "bonn", "--folder", fed.fed)
        write_table(fed.table("bonn"), 9)
        fed._join("bonn", ("--approve-all",))
        fed.sites = ("bonn", "kyoto", "oslo")
        fed.start_site("bonn")
        fed.wait_connected()
        second = study_text('method = "exact"\nrounds = 6\ndegree = 3', sites=json.dumps(fed.sites))
        for site in ("kyoto", "oslo"):
            fed.command("site", "pin", "bonn", fed.keys["bonn"], "--new", "--folder", fed.home(site))
        fed.run(second, tmp_path / "second")
        fed.assert_conforms(tmp_path / "second", second)
        assert {name: pid for name, pid in hosts(fed).items() if name in ("server", "oslo")} == {
            name: before[name] for name in ("server", "oslo")
        }

        # The revoked one comes back with a new key, and the settings that it had
        fed.stop_site("lima")
        for folder in ("key", "kit"):
            shutil.move(fed.home("lima") / folder, tmp_path / f"old-{folder}")
        settings = SiteFolder(fed.home("lima")).settings.read_bytes()
        fed.command("site", "request", f"{fed.fed.name}/{fed.fed.name}.invite", "--site", "lima")
        fed.command("federation", "approve", "lima/lima.request.zip", "--folder", fed.fed, code=1)
        fed.command("federation", "approve", "lima/lima.request.zip", "--force", "--folder", fed.fed)
        fed.command("site", "renew", "lima.signed.zip")
        assert SiteFolder(fed.home("lima")).settings.read_bytes() == settings
        fed.start_site("lima")
        fed.wait_connected(["lima"])
        assert KeysOnFile(FederationFolder(fed.fed))("lima") is not None
