"""`silograph site doctor` names what is wrong: each fault is planted into a sound site, and found."""

import json
import os
import resource
import shutil
import signal
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

pytest.importorskip("nvflare")
pytest.importorskip("grpc")

from silograph._util.locks import lock
from silograph.cli.app import app
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import HOST_FILE, SiteFolder
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.reach import reach
from silograph.federation.refusals import Refused
from silograph.federation.site import checks
from silograph.federation.site.address import address_of
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.audit import AuditLog
from silograph.federation.site.checks import Finding, diagnose, worst
from silograph.federation.site.contact import Contact
from silograph.federation.site.pins import Pins
from silograph.federation.site.restored import check_witness
from silograph.federation.site.settings import SiteSettings, write_site
from testing.consortium import NODES, write_table
from testing.real_federation import free_port
from testing.tls import Authority, Identity, grpc_server, other_server

SITE, N_SAMPLES = "oslo", 2000


@dataclass
class Scene:
    """A site that joined, beside the authority that signed it."""

    folder: SiteFolder
    authority: Authority

    def change_invitation(self, **changes: object) -> None:
        path = self.folder.invitation
        write_invitation(path, replace(read_invitation(path), **changes))
        self.write_config()

    def write_config(self) -> None:
        """The kit's, with the address of the invitation."""
        service = {"service": {"target": address_of(read_invitation(self.folder.invitation))}}
        self.folder.kit.config.write_text(json.dumps({"servers": [service]}))

    def change_settings(self, before: str, after: str) -> None:
        text = self.folder.settings.read_text()
        assert before in text
        self.folder.settings.write_text(text.replace(before, after))

    @property
    def table(self) -> Path:
        return self.folder.path / "table.csv"

    def change_row(self, row: int, change: Callable[[str], str]) -> None:
        lines = self.table.read_text().splitlines()
        lines[row - 1] = change(lines[row - 1])
        self.table.write_text("\n".join(lines) + "\n")

    def renew(self, identity: Identity) -> None:
        identity.write(self.folder.kit.certificate, self.folder.kit.key)

    def note_connection(self, **said: object) -> None:
        """As the host does when the site is connected."""
        contact = Contact("localhost:1", self.folder.connection, lambda line: None, clock=lambda: 0.0)
        told = {"version": version("silograph"), "nvflare": version("nvflare"), "clock": 0.01} | said
        contact.hear({"kind": "server", **told})
        contact.hear({"kind": "answer", "code": "ok"})

    def findings(self, **options: object) -> list[Finding]:
        return diagnose(self.folder.path, host=1234, **options)


@contextmanager
def hosted(scene: Scene) -> Iterator[None]:
    """As if a host had the folder."""
    with (scene.folder.path / HOST_FILE).open("w") as file:
        lock(file)
        file.write('{"host": 1234, "process": 1235}')
        file.flush()
        yield


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def member(authority: Authority) -> Identity:
    return authority.identity(SITE)


@pytest.fixture(scope="module")
def port(authority: Authority) -> Iterator[int]:
    with grpc_server(authority, authority.identity("localhost")) as port:
        yield port


@pytest.fixture
def scene(tmp_path: Path, authority: Authority, member: Identity, port: int) -> Scene:
    home = tmp_path / SITE
    home.mkdir(mode=0o700)
    made = Scene(SiteFolder(home), authority)
    write_table(made.table, 1, n_samples=N_SAMPLES)
    made.folder.nodes.write_text("\n".join(NODES) + "\n")
    write_site(home, SiteSettings(name=SITE, federation="test", server="localhost", data=Path("table.csv")))
    write_invitation(
        made.folder.invitation,
        Invitation(name="test", server="localhost", port=port, sites=(SITE, "lima"), fingerprint="0" * 64, nodes=NODES),
    )
    made.renew(member)
    made.write_config()
    made.folder.kit.root_certificate.write_bytes(authority.root)
    made.folder.log.parent.mkdir()
    made.folder.key.mkdir()
    AuditLog(made.folder.audit_log).append({"what": "settings"})
    made.note_connection()
    return made


def test_nothing_is_wrong_with_a_sound_site(scene: Scene) -> None:
    findings = scene.findings()
    assert [one for one in findings if one.state != "ok"] == []
    assert worst(findings) == "ok"
    found = {one.check: one.found for one in findings}
    assert found["server's name"] == "localhost is 127.0.0.1"
    assert found["table"] == f"table.csv: {N_SAMPLES} samples of {len(NODES)} nodes, all of it read"
    assert found["clock"].startswith("agrees with the server's to 0.01 s, at ")


# --- planted faults ---------------------------------------------------------------------------------------------------

Plant = Callable[[Scene], object]


def wrong_name(scene: Scene) -> None:
    scene.change_invitation(server="no-such-host.invalid")


def closed_port(scene: Scene) -> None:
    scene.change_invitation(port=free_port())


def other_port(scene: Scene) -> None:
    write_invitation(scene.folder.invitation, replace(read_invitation(scene.folder.invitation), port=8099))


def word_in_a_row(scene: Scene) -> None:
    scene.change_row(1234, lambda row: "n/e," + row.split(",", 1)[1])


def other_node(scene: Scene) -> None:
    scene.change_row(1, lambda row: row.replace("node 3", "node X"))


def few_samples(scene: Scene) -> None:
    write_table(scene.table, 1, n_samples=12)


def no_table(scene: Scene) -> None:
    scene.table.unlink()


def expired(scene: Scene) -> None:
    scene.renew(scene.authority.identity(SITE, days=(-400, -35)))


def not_valid_yet(scene: Scene) -> None:
    scene.renew(scene.authority.identity(SITE, days=(2, 300)))


def nearly_expired(scene: Scene) -> None:
    scene.renew(scene.authority.identity(SITE, days=(-400, 30.5)))


def foreign(scene: Scene) -> None:
    scene.renew(Authority().identity(SITE))


def of_another_site(scene: Scene) -> None:
    scene.renew(scene.authority.identity("lima"))


def other_key(scene: Scene) -> None:
    scene.folder.kit.key.write_bytes(scene.authority.identity(SITE).key)


def unreadable_key(scene: Scene) -> None:
    scene.folder.kit.key.write_bytes(b"\x00" * 100)


def open_key(scene: Scene) -> None:
    scene.folder.kit.key.chmod(0o644)


def clock_off(scene: Scene) -> None:
    scene.note_connection(clock=7200.0)


def clock_behind_the_log(scene: Scene) -> None:
    text = scene.folder.audit_log.read_text()
    year = str(datetime.now(UTC).year)
    scene.folder.audit_log.write_text(text.replace(f'"time":"{year}', f'"time":"{int(year) + 1}'))


def older_copy(scene: Scene) -> None:
    with pytest.raises(Refused):
        check_witness(scene.folder, AuditLog(scene.folder.audit_log), [7, "ab" * 32])


def altered_log(scene: Scene) -> None:
    AuditLog(scene.folder.audit_log).append({"what": "asked"})
    scene.folder.audit_log.write_text(scene.folder.audit_log.read_text().replace("settings", "setting5"))


def budget_cut_off(scene: Scene) -> None:
    entry = {"what": "spent", "opening": 1, "line": "0" * 64}
    AuditLog(scene.folder.audit_log).append(entry)


def other_version(scene: Scene) -> None:
    scene.note_connection(version="99.0")


def other_nvflare(scene: Scene) -> None:
    scene.note_connection(nvflare="2.7.0")


def bad_settings(scene: Scene) -> None:
    scene.change_settings("min_sites = 2", 'min_sites = "two"')


def no_room(scene: Scene) -> None:
    scene.change_settings("# sums_total = 1", "sums_total = 0")


def waiting(scene: Scene) -> None:
    text = 'name = "x"\nnodes = ["a", "b"]\n'
    Approvals(scene.folder.path).note_pending(sha_of(text.encode()), text, asked_by="localhost")


def no_program(scene: Scene) -> None:
    scene.change_settings("on_pending = []", 'on_pending = ["/no/such/mail", "-s"]')


def no_right_to_run(scene: Scene) -> None:
    (scene.folder.path / "tell.sh").write_text("#!/bin/sh\n")
    scene.change_settings("on_pending = []", 'on_pending = ["./tell.sh"]')


def refused(scene: Scene) -> None:
    entry = {"what": "refused", "run": "746b8f61772df3e4.1", "code": "scale", "detail": "3 is outside", "study": "ab"}
    AuditLog(scene.folder.audit_log).append(entry)
    AuditLog(scene.folder.audit_log).append({"what": "refused", "run": "746b8f61772df3e4.1", "code": "unapproved"})


def key_not_pinned(scene: Scene) -> None:
    text = f'name = "x"\nnodes = {json.dumps(NODES)}\nsites = ["kiel", "lima", "rome"]\nshare_graphs = false\n'
    text += '[learn]\nmethod = "oneshot"\n[privacy]\nsums = "masked"\n[keys]\n'
    text += f'kiel = "{"cd" * 32}"\nlima = "{"ab" * 32}"\nrome = "{"ba" * 32}"\n'
    Approvals(scene.folder.path).note_pending(sha_of(text.encode()), text, asked_by="localhost")


@pytest.mark.parametrize(
    ("plant", "check", "state", "words"),
    [
        (wrong_name, "server's name", "wrong", "the name 'no-such-host.invalid' is not known here"),
        (closed_port, "server's port", "wrong", "nothing listens at port"),
        (other_port, "address", "wrong", "the invitation says localhost:8099"),
        (word_in_a_row, "table", "wrong", "table.csv, row 1234, column 'node 0': expected a finite number, got 'n/e'"),
        (other_node, "table", "wrong", "expected the nodes of the federation"),
        (few_samples, "table", "wrong", "fewer samples than the 20"),
        (no_table, "table", "wrong", "table.csv"),
        (expired, "certificate", "wrong", "This site's certificate ended on"),
        (expired, "server's root", "wrong", "the server refuses our certificate, which ended on"),
        (not_valid_yet, "certificate", "wrong", "by this clock"),
        (nearly_expired, "certificate", "warning", "in 30 days"),
        (foreign, "certificate", "wrong", "the federation's root certificate has not signed it"),
        (foreign, "server's root", "wrong", "localhost does not accept our certificate"),
        (of_another_site, "certificate", "wrong", "is of 'lima', site.toml says 'oslo'"),
        (other_key, "key", "wrong", "expected the RSA key of client.crt, got another"),
        (unreadable_key, "key", "wrong", "the key or its certificate cannot be read"),
        (open_key, "rights", "wrong", "others may read"),
        (clock_off, "clock", "wrong", "is 2 hours behind the server's"),
        (clock_behind_the_log, "clock", "wrong", "the audit log ends 365 days in the future"),
        (older_copy, "history", "wrong", "the coordinator has seen entry 7 of the audit log, which is not there"),
        (altered_log, "history", "wrong", "line 1: altered"),
        (budget_cut_off, "history", "wrong", "has 0 openings, the audit log tells of 1"),
        (other_version, "silograph", "warning", "99.0 at the server"),
        (other_nvflare, "NVFlare", "wrong", "2.7.0 at the server"),
        (bad_settings, "settings", "wrong", "min_sites: expected a whole number"),
        (no_room, "budget", "warning", "0 of 0 openings without noise are left"),
        (no_program, "on_pending", "wrong", "no program /no/such/mail"),
        (no_right_to_run, "on_pending", "wrong", "no program ./tell.sh that this account may run"),
        (refused, "refusal", "warning", "run 746b8f61772df3e4.1 was refused at 20"),
        (waiting, "studies", "warning", "1 waits for approval"),
    ],
)
def test_a_planted_fault_is_named(scene: Scene, plant: Plant, check: str, state: str, words: str) -> None:
    plant(scene)
    findings = scene.findings()
    (found,) = [one for one in findings if one.check == check and one.state != "ok"]
    assert words in found.found
    assert found.state == state
    assert worst(findings) == state
    assert found.cure or ". " in found.found  # what to do is said
    assert "\n" not in found.found + found.cure


def test_a_refusal_is_told_until_the_study_is_answered(scene: Scene) -> None:
    refused(scene)
    said = CliRunner().invoke(app, ["site", "status", "--folder", str(scene.folder.path)]).output
    assert "refused      scale, run 746b8f61772df3e4.1 at 20" in said
    assert "3 is outside" in said
    AuditLog(scene.folder.audit_log).append({"what": "answered", "run": "746b8f61772df3e4.2", "study": "ab"})
    assert worst(scene.findings()) == "ok"


def test_a_key_that_a_study_needs_and_nobody_pinned_is_told_with_the_command(scene: Scene) -> None:
    key_not_pinned(scene)
    Pins(scene.folder.path).set("rome", "ba" * 32, by="ann")
    (found,) = [one for one in scene.findings() if one.check == "pins"]
    assert (found.state, "the keys of kiel, lima" in found.found) == ("warning", True)
    assert f"silograph site pin kiel {shown_fingerprint('cd' * 32)}. The others likewise" in found.cure
    pins = Pins(scene.folder.path)
    pins.set("lima", "ab" * 32, by="ann")
    pins.set("kiel", "ef" * 32, by="ann")
    (found,) = [one for one in scene.findings() if one.check == "pins"]
    assert found.cure.endswith(f"silograph site pin kiel {shown_fingerprint('cd' * 32)} --replace")
    pins.set("kiel", "cd" * 32, by="ann", replace=True)
    (found,) = [one for one in scene.findings() if one.check == "pins"]
    assert found.state == "ok"


def test_what_does_not_speak_tls_is_told_from_what_does_not_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "reach", partial(reach, seconds=0.5))
    with other_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        scene.change_invitation(port=port)
        (found,) = [one for one in scene.findings() if one.state == "wrong"]
        assert (found.check, "does not speak TLS" in found.found) == ("server's TLS", True)
    with other_server(None) as port:
        scene.change_invitation(port=port)
        (found,) = [one for one in scene.findings() if one.state == "wrong"]
        assert (found.check, "and then does not answer" in found.found) == ("server's TLS", True)


@pytest.mark.parametrize("name", ["a" * 64, "two..dots"])
def test_what_is_no_name_at_all_is_said_to_be_none(scene: Scene, name: str) -> None:
    about = SimpleNamespace(server=name, port=1)  # an invitation takes the first
    fault = reach(about, scene.folder.kit).fault
    assert fault is not None
    assert fault.step == "name"
    assert "(it is no name of a machine)" in fault.found


def test_the_server_of_another_federation_is_named(scene: Scene) -> None:
    other = Authority("somebody else's")
    with grpc_server(other, other.identity("localhost")) as port:
        scene.change_invitation(port=port)
        (found,) = [one for one in scene.findings() if one.state == "wrong"]
    assert found.check == "server's root"
    assert "a certificate of another federation, issued by \"somebody else's\" for 'localhost'" in found.found
    assert "by telephone" in found.cure


@pytest.mark.parametrize(
    ("name", "days", "words"),
    [
        ("localhost", (-100, -3), "the server's certificate ended on"),
        ("localhost", (1, 300), "the server's certificate is not valid before"),
        ("elsewhere", (-1, 300), "the server's certificate is not for the name 'localhost'"),
    ],
)
def test_a_server_with_a_certificate_that_does_not_hold_is_named(
    scene: Scene, name: str, days: tuple[float, float], words: str
) -> None:
    with grpc_server(scene.authority, scene.authority.identity(name, days=days)) as port:
        scene.change_invitation(port=port)
        (found,) = [one for one in scene.findings() if one.state == "wrong"]
    assert found.check == "server's root"
    assert words in found.found


def test_a_disk_that_is_nearly_full_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 10**12, 10**6))
    (found,) = [one for one in scene.findings() if one.state != "ok"]
    assert (found.check, found.state, found.found[:21]) == ("disk", "wrong", "0.001 GB are free bel")


def test_a_disk_that_takes_nothing_more_is_named(scene: Scene) -> None:
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        findings = scene.findings()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    (found,) = [one for one in findings if one.state != "ok"]
    assert (found.check, found.state) == ("writing", "wrong")
    assert os.strerror(27) in found.found


def test_a_site_that_nobody_hosts_or_that_is_away_is_not_well(scene: Scene) -> None:
    (found,) = [one for one in diagnose(scene.folder.path, host=None) if one.state != "ok"]
    assert (found.check, found.cure) == ("running", "Start it: silograph site start")
    known = json.loads(scene.folder.connection.read_text())
    scene.folder.connection.write_text(json.dumps(known | {"state": "away", "why": "nothing listens there"}))
    (found,) = [one for one in scene.findings() if one.state != "ok"]
    assert "which is not connected since" in found.found
    assert found.cure == "nothing listens there"


def test_a_site_that_the_server_refuses_is_told_so_and_what_to_do(scene: Scene) -> None:
    contact = Contact("localhost:1", scene.folder.connection, lambda line: None, clock=lambda: 0.0)
    contact.hear({"kind": "refused", "why": "its key was revoked"})
    (found,) = [one for one in scene.findings() if one.check == "admission"]
    assert (found.state, found.found) == ("wrong", "The server refuses this site: its key was revoked")
    assert "move key/ and kit/ away" in found.cure
    assert scene.findings()[-1].cure == "The server refuses it: see admission"
    for host in (True, False):
        with hosted(scene) if host else nullcontext():
            said = CliRunner().invoke(app, ["site", "status", "--folder", str(scene.folder.path)]).output
        assert "The server refuses this site: its key was revoked. Ask the coordinator" in said
        assert "is away" not in said
        assert "can be reached" not in said


def test_the_quick_look_reads_no_rows_but_sees_other_nodes(scene: Scene) -> None:
    word_in_a_row(scene)
    assert worst(scene.findings(quick=True)) == "ok"
    other_node(scene)
    (found,) = [one for one in scene.findings(quick=True) if one.state != "ok"]
    assert found.found.endswith("has nodes that the federation has not: 'node X'")


def test_what_a_full_read_has_found_is_told_by_the_quick_look_and_by_the_status(scene: Scene) -> None:
    word_in_a_row(scene)
    assert worst(scene.findings()) == "wrong"
    (found,) = [one for one in scene.findings(quick=True) if one.state != "ok"]
    assert (found.check, "row 1234, column 'node 0'" in found.found) == ("table", True)
    status = ["site", "status", "--folder", str(scene.folder.path)]
    assert "CANNOT BE READ: " in CliRunner().invoke(app, status).output
    assert "row 1234" in json.loads(CliRunner().invoke(app, [*status, "--json"]).output)["unreadable"]
    scene.change_row(1234, lambda row: "0," + row.split(",", 1)[1])
    assert "CANNOT BE READ" not in CliRunner().invoke(app, status).output


def test_the_command_ends_with_1_if_something_is_wrong_and_shows_what_others_wrote_as_it_is(scene: Scene) -> None:
    with hosted(scene):
        well = CliRunner().invoke(app, ["site", "doctor", "--json", "--folder", str(scene.folder.path)])
        text = CliRunner().invoke(app, ["site", "doctor", "--folder", str(scene.folder.path)])
        status = CliRunner().invoke(app, ["site", "status", "--folder", str(scene.folder.path)])
        scene.change_row(3, lambda row: "\x1b[31m," + row.split(",", 1)[1])
        wrong = CliRunner().invoke(app, ["site", "doctor", "--folder", str(scene.folder.path)])
    assert (well.exit_code, json.loads(well.output)["state"]) == (0, "ok")
    assert (text.exit_code, text.output.splitlines()[-1]) == (0, "20 ok, 0 to look at, 0 wrong.")
    assert status.exit_code == 0
    assert "connection   connected to localhost:" in status.output
    assert wrong.exit_code == 1
    assert "row 3" in wrong.output
    assert "\x1b[31m," not in wrong.output


def test_a_clock_that_is_behind_by_a_year_makes_its_own_certificate_invalid(scene: Scene) -> None:
    findings = scene.findings(now=datetime.now(UTC) - timedelta(days=365))
    assert {one.check for one in findings if one.state == "wrong"} == {"certificate", "clock"}
