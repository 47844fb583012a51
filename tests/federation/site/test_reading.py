"""A site says that its data are ready only once this very version was read to its last row, and it is read once."""

import json
import os
import subprocess
import sys

import pytest

from silograph._util.locks import lock
from silograph.data.readers import Signals
from silograph.federation.coordinator import survey as survey_module
from silograph.federation.coordinator.survey import read_status, survey_sites
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.site import reading
from silograph.federation.site.checks import check_table
from silograph.federation.site.settings import read_site
from testing.consortium import Consortium, Loopback, close
from testing.waiting import eventually

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

    def counted(folder, data, left=None):
        seen.append(data.version)
        honest(folder, data, left)

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
    begun, honest = [], reading._hand_over
    monkeypatch.setattr(reading, "_hand_over", lambda folder, held: begun.append(os.dup(held.fileno())))  # which locks
    monkeypatch.setattr(reading, "read_in_full", never)
    monkeypatch.setattr(reading, "QUICK_SECONDS", 0.01)
    monkeypatch.setattr(survey_module, "FIRST_PAUSE", 0.01)
    consortium = site.consortium
    transport, answers = Loopback({SITE: consortium.service(SITE)}), []

    def listened(name, data, service):
        reply = service(data)
        answers.append(b"reading" in reply)
        if len(answers) == 3:  # the process that was begun
            with os.fdopen(begun[0], "ab") as held:
                honest(site.folder, held)
        return reply

    transport.tamper = listened
    federation = FederationFolder(consortium.folder)
    who = {"signer": consortium.server, "trust": consortium.trust}
    survey_sites(federation, transport, [SITE], attempt="a", **who)
    close(transport.services)
    assert answers[:3] == [True] * 3
    assert len(begun) == 1
    assert read_status(federation)["sites"][SITE]["data"] == "ready"


def never(folder, data, left):
    """A table that is read by another process alone."""
    assert left.wait(60)


def read_by_a_process(site, monkeypatch):
    monkeypatch.setattr(reading, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(reading, "read_in_full", never)
    eventually(lambda: site.says() != "reading", 60)
    return site.says()


def test_what_takes_longer_is_read_by_a_process_which_names_what_is_wrong_as_the_site_would(site, monkeypatch):
    header, *rows = site.table.read_text().splitlines()
    site.table.write_text("\n".join([f"{header},age", *(f"{row},old" for row in rows)]) + "\n")
    assert read_by_a_process(site, monkeypatch) == "not readable"
    assert 'drop = ["age"] in site.toml' in json.loads(site.folder.read.read_text())["problem"]


ASK = """
import os, signal, sys
from pathlib import Path
from silograph.federation.folders import SiteFolder
from silograph.federation.site import data, reading, settings
folder = SiteFolder(Path(sys.argv[1]))
reading.QUICK_SECONDS, reading.read_in_full = 0.0, lambda folder, data, left: left.wait()
print(reading.FullReading(folder).state(data.look_at_data(settings.read_site(folder.path), folder.path)), flush=True)
os.killpg(0, signal.SIGKILL)
"""


def test_the_process_that_reads_outlives_the_job_that_was_asked(site):
    done = subprocess.run([sys.executable, "-c", ASK, site.folder.path], capture_output=True, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (-9, b"reading\n", b"")
    eventually(site.folder.read.exists, 60)
    assert site.says() == "ready"


def test_of_two_that_are_asked_one_reads(site, reads):
    with site.folder.read_lock.open("ab") as held:
        assert lock(held, wait=0.0)
        assert site.says() == "reading"
        assert reads == []
    assert site.says() == "ready"


def test_a_disk_that_fails_in_the_middle_is_remembered_until_the_site_looks_again(site, monkeypatch):
    def failing(self, *about, **options):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(Signals, "chunks", failing)
        assert [site.says() for _ in range(2)] == ["not readable"] * 2
    problem = json.loads(site.folder.read.read_text())["problem"]
    assert "lima" in problem
    assert "cannot be read to its end (Input/output error)" in problem
    assert "site doctor" in problem
    (found,) = check_table(site.folder, read_site(site.folder.path))
    assert found.state == "ok"
    assert site.says() == "ready"


def test_a_file_that_is_exchanged_while_it_is_read_is_given_up(site, monkeypatch):
    monkeypatch.setattr(reading, "LOOK_SECONDS", -1.0)
    honest, seen = Signals.chunks, []

    def exchanged(self, *about, **options):
        for chunk in honest(self, *about, **options):
            os.utime(site.table, (1, 1))
            yield chunk
        seen.append("the end")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Signals, "chunks", exchanged)
        assert site.says() == "reading"
    assert not seen
    assert not site.folder.read.exists()
    assert site.says() == "ready"


def test_what_the_doctor_found_is_known_when_the_site_is_asked(site, reads):
    site.table.write_text(site.table.read_text().rstrip("\n").rpartition(",")[0] + ",1x2\n")
    (found,) = check_table(site.folder, read_site(site.folder.path))
    assert found.state == "wrong"
    assert site.says() == "not readable"
    assert reads == []
