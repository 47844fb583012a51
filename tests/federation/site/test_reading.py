"""A site says that its data are ready only once this very version was read to its last row, and it is read once."""

import json
import threading

import pytest

from silograph.federation.coordinator import survey as survey_module
from silograph.federation.coordinator.survey import read_status, survey_sites
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.site import reading
from testing.consortium import Consortium, Loopback, close

SITE = "lima"


class Site:
    """Asks a site how its data are, each time a new process."""

    def __init__(self, consortium):
        self.consortium, self.table = consortium, consortium.table(SITE)
        self.folder = SiteFolder(consortium.folder / SITE)

    def says(self):
        service = self.consortium.service(SITE)
        request, _ = SignedMessage({"kind": "status"}, b"", self.consortium.server).to(SITE)
        reply = service.reply(request)
        service.close()
        return json.loads(open_message(reply, self.consortium.trust).body)["data"]


@pytest.fixture
def site(tmp_path):
    return Site(Consortium(tmp_path))


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr(reading, "QUICK_SECONDS", 60.0)  # this machine may be busy


@pytest.fixture
def reads(monkeypatch):
    """The versions that were read in full, one entry for each time."""
    seen, honest = [], reading.read_in_full

    def counted(folder, data):
        seen.append(data.version)
        honest(folder, data)

    monkeypatch.setattr(reading, "read_in_full", counted)
    return seen


def test_a_bad_cell_in_the_last_row_is_noticed_though_the_nodes_are_right(site):
    site.table.write_text(site.table.read_text().rstrip("\n").rpartition(",")[0] + ",1x2\n")
    assert site.says() == "not readable"
    assert "row 41" in json.loads(site.folder.read.read_text())["problem"]


def test_a_version_is_read_once_whatever_it_gave(site, reads):
    assert [site.says() for _ in range(3)] == ["ready"] * 3
    assert len(reads) == 1
    before = site.table.read_text()
    site.table.write_text(before.rstrip("\n") + "x\n")
    assert [site.says() for _ in range(3)] == ["not readable"] * 3
    assert len(reads) == 2
    site.table.write_text(before)
    assert site.says() == "ready"


def test_a_version_that_a_run_has_read_is_ready(site, reads):
    consortium = site.consortium
    transport = Loopback(consortium.services())
    consortium.finish(consortium.run('method = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25'), transport)
    assert site.says() == "ready"
    assert reads == []


def test_a_large_table_is_being_read_while_others_ask_and_a_survey_asks_again(site, monkeypatch):
    go_on, honest = threading.Event(), reading.read_in_full

    def slowly(folder, data):
        assert go_on.wait(60)
        honest(folder, data)

    monkeypatch.setattr(reading, "read_in_full", slowly)
    monkeypatch.setattr(reading, "QUICK_SECONDS", 0.01)
    monkeypatch.setattr(survey_module, "FIRST_PAUSE", 0.01)
    consortium = site.consortium
    transport, answers = Loopback({SITE: consortium.service(SITE)}), []

    def listened(name, data, service):
        reply = service(data)
        answers.append(b"reading" in reply)
        if len(answers) == 3:
            go_on.set()
        return reply

    transport.tamper = listened
    federation = FederationFolder(consortium.folder)
    who = {"signer": consortium.server, "trust": consortium.trust}
    survey_sites(federation, transport, [SITE], attempt="a", **who)
    close(transport.services)
    assert answers[:3] == [True] * 3
    assert read_status(federation)["sites"][SITE]["data"] == "ready"
