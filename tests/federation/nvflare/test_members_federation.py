"""A federation whose members change while it runs: one is renewed, one revoked, one added; studies before and after.

All the while the root key is elsewhere, in the office's copy of the folder.
"""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from cryptography import x509

from silograph.federation.folders import FederationFolder, SiteFolder
from testing.consortium import write_table
from testing.real_federation import RealFederation, study_text
from testing.waiting import eventually

pytestmark = pytest.mark.federation


def serial(certificate: Path) -> int:
    return x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number


def connected(fed: RealFederation) -> set[str]:
    return {one["site"] for one in fed.status()["sites"] if one["connected"]}


def bring(fed: RealFederation, office: Path) -> None:
    """What the how-to says to bring to the server after the office has done anything."""
    for path in (office / "federation.json", office / f"{fed.fed.name}.invite"):
        shutil.copy(path, fed.fed)
    shutil.copytree(office / "sites", fed.fed / "sites", dirs_exist_ok=True)


def test_members_change_while_the_federation_runs(tmp_path):
    with RealFederation(tmp_path, sites=("kyoto", "lima", "oslo")) as fed:
        office = tmp_path / "office"
        shutil.copytree(fed.fed, office, ignore=shutil.ignore_patterns("storage", "logs", "host.pid"))
        shutil.rmtree(fed.fed / "ca")
        before = {name: host.pid for name, host in fed.hosts.items()}
        first = fed.masked_text('method = "oneshot"\ndegree = 3')
        fed.run(first, tmp_path / "first")
        fed.assert_conforms(tmp_path / "first", first)

        # One is renewed: it is asked for nothing, and all goes on
        kyoto = SiteFolder(fed.home("kyoto"))
        was, settings, key = serial(kyoto.kit.certificate), kyoto.settings.read_bytes(), fed.keys["kyoto"]
        refused = fed.command("federation", "renew", "kyoto", "--folder", fed.fed, code=1)
        assert "the root key is not here" in refused.stderr
        fed.command("federation", "renew", "kyoto", "--folder", office)
        bring(fed, office)
        assert "started anew" in fed.command("site", "renew", "kyoto.signed.zip").stdout
        assert serial(kyoto.kit.certificate) != was
        assert (kyoto.settings.read_bytes(), fed.keys["kyoto"]) == (settings, key)
        fed.run(first, tmp_path / "again")  # answers are signed with the new certificate already
        fed.stop_site("kyoto")
        fed.start_site("kyoto")
        fed.wait_connected()

        # One is revoked: its connection is dropped, and it comes in no more
        fed.command("federation", "revoke", "lima", "--folder", fed.fed)
        fed.command("federation", "revoke", "lima", "--folder", office)
        log = FederationFolder(fed.fed).log
        eventually(lambda: "Refused a connection of site lima: its key was revoked." in log.read_text(), 30.0)
        told = "The server refuses this site: its key was revoked. Ask the coordinator; for a new key:"
        eventually(lambda: told in SiteFolder(fed.home("lima")).log.read_text(), 60.0)
        eventually(lambda: connected(fed) == {"kyoto", "oslo"}, 60.0, every=1.0)
        options = ["--out", "no", "--folder", fed.fed]
        assert "lima" in fed.command("federation", "run", fed.write_study(first), *options, code=1).stderr

        # One is added, and the others pin it. A masked sum would show it beside the first one: hence an open study
        fed.command("federation", "add-site", "bonn", "--folder", office)
        write_table(fed.table("bonn"), 9)
        fed.command("site", "request", f"{office.name}/{fed.fed.name}.invite", "--site", "bonn")
        fed.command("federation", "approve", "bonn/bonn.request.zip", "--folder", office)
        bring(fed, office)
        fed.command("site", "join", "bonn.signed.zip", "--data", fed.table("bonn"), "--approve-all")
        fed.sites = ("bonn", "kyoto", "oslo")
        fed.start_site("bonn")
        for site in ("kyoto", "oslo"):
            fed.command("site", "pin", "bonn", fed.keys["bonn"], "--new", "--folder", fed.home(site))
        fed.wait_connected()
        second = study_text('method = "exact"\nrounds = 6\ndegree = 3', sites=json.dumps(fed.sites))
        fed.run(second, tmp_path / "second")
        fed.assert_conforms(tmp_path / "second", second)
        assert {name: fed.hosts[name].pid for name in ("server", "oslo")} == {
            name: before[name] for name in ("server", "oslo")
        }

        # The revoked one comes back with a new key, and the settings that it had; the server with a new certificate
        fed.stop_site("lima")
        lima = SiteFolder(fed.home("lima"))
        settings = lima.settings.read_bytes()
        for folder in (lima.key, lima.kit.path):
            shutil.move(folder, tmp_path / f"old-{folder.name}")
        fed.command("site", "request", f"{office.name}/{fed.fed.name}.invite", "--site", "lima")
        fed.command("federation", "approve", "lima/lima.request.zip", "--folder", office, code=1)
        fed.command("federation", "approve", "lima/lima.request.zip", "--force", "--folder", office)
        bring(fed, office)
        fed.command("site", "renew", "lima.signed.zip")
        assert lima.settings.read_bytes() == settings
        server = FederationFolder(fed.fed).server.certificate
        was = serial(server)
        for who in ("server", "lead"):
            fed.command("federation", "renew", who, "--folder", office)
        shutil.copy(FederationFolder(office).server.certificate, server)
        shutil.copy(FederationFolder(office).lead.certificate, FederationFolder(fed.fed).lead.certificate)
        assert serial(server) != was
        fed.stop_server()
        fed.start_server()
        fed.start_site("lima")
        fed.wait_connected([*fed.sites, "lima"])
