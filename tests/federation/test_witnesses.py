"""A site's folder restored from an older copy is noticed: the coordinator has seen more of its log than it holds."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.errors import ProtocolError
from silograph.federation.coordinator.survey import read_status, survey_sites
from silograph.federation.coordinator.witnesses import Witnesses
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.folders import FederationFolder
from silograph.federation.refusals import PASSING, REASONS
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import entries, verify
from silograph.federation.witness import Witness, parse_witness
from testing.consortium import SITES, Consortium, Loopback, approve, close, rewrite

SITE = "oslo"
QUICK = 'method = "independent"\nalpha = 0.5\nbeta = 0.25'


def conduct(consortium: Consortium):
    services = consortium.services()
    outcome = consortium.run_attempt(consortium.run(QUICK), Loopback(services))
    close(services)
    return outcome


def restored(home: Path, *options: str) -> tuple[int, str]:
    (home / "federation.invite").touch()
    result = CliRunner().invoke(app, ["site", "restored", "--folder", str(home), *options])
    return result.exit_code, " ".join(result.output.split())


def survey(consortium: Consortium) -> dict[str, str]:
    services = consortium.services()
    federation = FederationFolder(consortium.folder)
    identity = {"attempt": "a", "signer": consortium.server, "trust": consortium.trust}
    survey_sites(federation, Loopback(services), consortium.sites, **identity)
    close(services)
    return {site: reply["data"] for site, reply in read_status(federation)["sites"].items()}


@pytest.fixture
def consortium(tmp_path) -> Consortium:
    made = Consortium(tmp_path / "sites")
    assert conduct(made).ended == "done"
    return made


@pytest.fixture
def older(consortium, tmp_path) -> Path:
    """Oslo's folder as it was put back from a copy, after more was answered."""
    home = consortium.folder / SITE
    shutil.copytree(home, tmp_path / "copy")
    assert conduct(consortium).ended == "done"
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "copy", home)
    return home


def test_the_coordinator_keeps_how_far_each_log_was(consortium):
    for site in SITES:
        seen = parse_witness(json.loads((consortium.folder / "witnesses" / f"{site}.json").read_text()))
        log = list(entries(consortium.folder / site / "audit.jsonl"))
        assert log[seen.entries - 1]["hash"] == seen.hash
        assert log[seen.entries - 1]["what"] == "asked"
        assert log[seen.entries :][0]["what"] == "answered"


def test_a_folder_from_an_older_copy_is_noticed_and_goes_on_only_when_told(consortium, older):
    """The attack: an approval that was taken back, rounds that were counted and versions answered are forgotten."""
    outcome = conduct(consortium)
    assert outcome.ended == "trouble"
    assert [(one["site"], one["reason"]) for one in outcome.troubles] == [(SITE, REASONS["restored"])]
    assert "silograph site restored" in REASONS["restored"]
    assert "restored" not in PASSING
    assert survey(consortium) == {"kyoto": "ready", "lima": "ready", "oslo": "restored"}
    assert [entry["code"] for entry in entries(older / "audit.jsonl") if "code" in entry] == ["restored"]
    code, said = restored(older, "--yes")
    assert code == 0
    for words in ("restored from an older copy", "approvals may be here again that were taken back", "answers again"):
        assert words in said
    last = list(entries(older / "audit.jsonl"))[-1]
    assert last["what"] == "restored"
    assert last["by"]
    assert conduct(consortium).ended == "done"
    assert survey(consortium)[SITE] == "ready"
    assert verify(older / "audit.jsonl").problem is None
    assert conduct(consortium).ended == "done", "and it stays so when the log has grown past what was lost"


def test_who_does_not_say_yes_goes_on_refusing(consortium, older):
    assert restored(older)[0] == 2  # nothing was refused yet
    assert "there is nothing to accept" in restored(older)[1]
    assert conduct(consortium).ended == "trouble"
    (older / "federation.invite").touch()
    said = CliRunner().invoke(app, ["site", "restored", "--folder", str(older)], input="n\n").output
    assert "goes on refusing" in said
    assert conduct(consortium).ended == "trouble"


def test_a_second_older_copy_is_noticed_too(consortium, older, tmp_path):
    assert conduct(consortium).ended == "trouble"
    restored(older, "--yes")
    for _ in range(3):
        assert conduct(consortium).ended == "done"
    shutil.rmtree(older)
    shutil.copytree(tmp_path / "copy", older)
    assert [one["reason"] for one in conduct(consortium).troubles] == [REASONS["restored"]]


def test_a_log_that_was_altered_where_the_coordinator_looked_is_noticed(consortium):
    path = consortium.folder / SITE / "audit.jsonl"
    seen = json.loads((consortium.folder / "witnesses" / f"{SITE}.json").read_text())[0]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[seen - 1] = lines[seen - 1].replace(b'"what":"asked"', b'"what":"never"')
    path.write_bytes(b"".join(lines))
    assert [one["reason"] for one in conduct(consortium).troubles] == [REASONS["restored"]]


def test_a_coordinator_that_has_lost_what_it_saw_is_answered(consortium):
    for path in (consortium.folder / "witnesses").iterdir():
        path.write_text("[")
    assert conduct(consortium).ended == "done"
    shutil.rmtree(consortium.folder / "witnesses")
    assert conduct(consortium).ended == "done"


@pytest.mark.parametrize("entry", [1, 5, 10**9])
def test_a_coordinator_that_makes_an_entry_up_is_refused_and_gets_nothing_else(consortium, entry):
    service, home = consortium.service(SITE), consortium.folder / SITE
    status, _ = SignedMessage({"kind": "status"}, b"", consortium.server).to(SITE)
    forged = rewrite(status, consortium.server, trust=consortium.trust, witness=[entry, "0" * 64])
    said = json.loads(open_message(service.reply(forged), consortium.trust).body)
    assert said["data"] == "restored"
    assert Approvals(home).approved() == []
    service.close()
    assert conduct(consortium).ended == "done", "the next honest request is answered as ever"


@pytest.mark.parametrize(
    "value", [5, "x", [], [1], [0, "0" * 64], [1, "0" * 63], [1.0, "0" * 64], [2**63, "0" * 64], {}]
)
def test_what_is_no_entry_is_malformed(consortium, value):
    with pytest.raises(ProtocolError, match="a number and a hash of the audit log"):
        parse_witness(value)
    service = consortium.service(SITE)
    status, _ = SignedMessage({"kind": "status"}, b"", consortium.server).to(SITE)
    forged = rewrite(status, consortium.server, trust=consortium.trust, witness=value)
    assert open_message(service.reply(forged), consortium.trust).head["code"] == "malformed"
    service.close()


def test_what_was_seen_never_goes_backwards(tmp_path, consortium):
    seen = Witnesses(tmp_path / "seen")

    def answer(number: int):
        head = {"kind": "answer", "witness": [number, f"{number:064x}"]}
        return open_message(SignedMessage(head, b"", consortium.signers[SITE]).to("x")[0], consortium.trust)

    assert seen.head(SITE) == {}
    for number, kept in ((5, 5), (3, 5), (9, 9), (9, 9), (1, 9)):
        seen.see(SITE, answer(number))
        assert seen.head(SITE) == {"witness": Witness(kept, f"{kept:064x}").plain}
    assert seen.head("lima") == {}


def test_refusals_name_no_entry_as_a_power_cut_may_take_theirs_back(tmp_path):
    consortium = Consortium(tmp_path, approve_all=False)
    service, run = consortium.service(SITE), consortium.run(QUICK)
    body = json.dumps({"study": run.study().text.decode(), "nodes": run.nodes, "silos": run.sites}).encode()
    hello, _ = SignedMessage({"kind": "hello", "run": run.run_id}, body, consortium.server).to(SITE)
    assert "witness" not in open_message(service.reply(hello), consortium.trust).head
    approve(tmp_path / SITE, run.study().text)
    assert "witness" in open_message(service.reply(hello), consortium.trust).head
    service.close()
