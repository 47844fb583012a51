"""What the site's guide says of quorum, approvals, revocation and the account in the log is what a site does."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.envelope import open_message
from silograph.federation.refusals import REASONS
from silograph.federation.site.service import SiteService
from testing.consortium import Consortium, Loopback, close

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "site.md").read_text(encoding="utf-8")
THREE = '["kyoto", "lima", "oslo"]'


def says(text: str) -> bool:
    return text in " ".join(GUIDE.split())


def services_of(consortium: Consortium) -> dict[str, SiteService]:
    return {name: consortium.service(name) for name in consortium.sites}


def site(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["site", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("policy", "sites", "answered"),
    [
        ("", THREE, False),  # all are promised, two take part
        ("quorum = 3", "", False),
        ("quorum = 2", THREE, True),
        ('on_missing = "continue"', THREE, True),  # two, by default
        ('on_missing = "continue"\nquorum = 3', THREE, False),
        ('on_missing = "continue"', '["kyoto", "oslo"]', False),  # lima is not named
        ("", "", True),  # nothing is promised
    ],
)
def test_a_site_checks_who_takes_part(tmp_path, policy, sites, answered):
    assert says('by default all, or two with `on_missing = "continue"`')
    consortium = Consortium(tmp_path, sites=("kyoto", "lima"))
    run = consortium.run(policy=policy, **({"sites": sites} if sites else {}))
    services = services_of(consortium)
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert (outcome.ended == "done") == answered
    assert answered or {trouble["reason"] for trouble in outcome.troubles} == {REASONS["sites"]}


def test_what_a_revocation_means(tmp_path, monkeypatch):
    assert says("A run under way is refused with the code `revoked`.")
    assert says("is refused with the code `unapproved`: the study is among those that wait")
    consortium = Consortium(tmp_path, approve_all=False)
    run = consortium.run()
    study = str(tmp_path / "study.toml")
    for name in consortium.sites:
        (tmp_path / name / "federation.invite").touch()  # by which a site's folder is known
        site("approve", study, "--yes", "--folder", str(tmp_path / name))
    oslo, codes, stop = str(tmp_path / "oslo"), [], []

    def revoking(name, data, reply):
        question, answer = open_message(data, consortium.trust), reply(data)
        code = open_message(answer, consortium.trust).head.get("code")
        codes.append((name, code))
        if name == "oslo" and question.head["kind"] == "round" and not stop and code is None:
            stop.append("revoked")
            site("approve", "--revoke", study, "--folder", oslo)
        if code == "unapproved":
            stop.append("unapproved")
        return answer

    def attempt(name):
        services = services_of(consortium)
        outcome = run_attempt(
            run, Loopback(services, tamper=revoking), attempt=name, signer=consortium.server, trust=consortium.trust,
            stopped=lambda: "unapproved" in stop,
        )  # fmt: skip
        close(services)
        return outcome

    first = attempt("a")
    assert first.ended == "trouble"
    assert [(one["site"], one["reason"]) for one in first.troubles] == [("oslo", REASONS["revoked"])]
    assert ("oslo", "revoked") in codes
    assert attempt("b").ended == "stopped"  # by us: it would wait for the approval
    assert ("oslo", "unapproved") in codes
    assert re.search(r"^waits ", site("approve", "--folder", oslo), re.MULTILINE)
    stop.remove("unapproved")
    site("approve", study, "--yes", "--folder", oslo)
    assert attempt("c").ended == "done"


def test_approving_by_the_hash_counts_rounds_from_0_again_and_names_the_real_account(tmp_path, monkeypatch):
    assert says("whenever you approve, by the file or by the hash")
    assert says("variables such as `USER` play no part")
    pwd = pytest.importorskip("pwd")
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    consortium = Consortium(tmp_path, approve_all=False)
    run = consortium.run()
    for name in consortium.sites:
        (tmp_path / name / "federation.invite").touch()
        site("approve", str(tmp_path / "study.toml"), "--yes", "--folder", str(tmp_path / name))
    services = services_of(consortium)
    assert consortium.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    oslo = str(tmp_path / "oslo")
    listed = site("approve", "--folder", oslo)
    assert not re.search(r"\b0 rounds answered", listed)
    sha = run.study().sha256
    assert "was approved for this version" in site("approve", sha, "--yes", "--folder", oslo)
    assert re.search(r"\b0 rounds answered", site("approve", "--folder", oslo))
    lines = (tmp_path / "oslo" / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    account = pwd.getpwuid(os.getuid()).pw_name
    assert {entry["by"] for entry in entries if entry["what"] == "approved"} == {account} != {"somebody-else"}


def test_what_a_withdrawal_means(tmp_path):
    assert says("no study goes on without a new approval")
    assert says("Wait until at least `min_new_samples` rows go together")
    consortium = Consortium(tmp_path, approve_all=False)
    run, study, table = consortium.run(), tmp_path / "study.toml", consortium.table("oslo")
    for name in consortium.sites:
        (tmp_path / name / "federation.invite").touch()
        site("approve", str(study), "--yes", "--folder", str(tmp_path / name))
    services = services_of(consortium)
    assert consortium.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    approve = ["site", "approve", str(study), "--yes", "--folder", str(tmp_path / "oslo")]
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    for gone, code in ((1, 2), (19, 2), (20, 0)):
        table.write_text("\n".join([head, *rows[gone:]]) + "\n", encoding="utf-8")
        assert CliRunner().invoke(app, approve).exit_code == code, gone
