"""Budgets in a federation: what a site has opened decides whether it answers, whoever asks and however runs end."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from silograph.errors import OutputError
from silograph.federation.coordinator import request as site_request
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.coordinator.run import Outcome
from silograph.federation.envelope import open_message
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import PASSING, REASONS, Refused
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.budget import Budget
from silograph.federation.site.data import look_at_data, version_of
from silograph.federation.site.gate import Gate
from silograph.federation.site.ledger import Ledger
from silograph.federation.site.persons import most_of_one, units_of_one
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.spending import spent_by
from silograph.federation.site.state import RunStore
from silograph.federation.study_file import parse_study
from testing.consortium import NODES, SITES, Consortium, Loopback, approve, close, write_table

SITE = "oslo"
QUICK = 'method = "independent"\nalpha = 0.5\nbeta = 0.25'
NOISE = "[privacy]\nepsilon = {epsilon}\ndelta = 1e-5\nmin_samples = 20\n"


def conduct(consortium: Consortium, alpha: float = 0.5, *, epsilon: float | None = None, tamper=None) -> Outcome:
    """A run of a study, open, of this α: other studies are those of another α."""
    privacy = "" if epsilon is None else NOISE.format(epsilon=epsilon)
    run = consortium.run(QUICK.replace("0.5", str(alpha)), privacy)
    services = consortium.services()
    transport = Loopback(services) if tamper is None else Loopback(services, tamper)
    outcome = consortium.run_attempt(run, transport)
    close(services)
    return outcome


def reasons(outcome: Outcome) -> set[str]:
    return {one["reason"] for one in outcome.troubles}


def test_a_study_without_noise_is_opened_once_for_all_its_runs(tmp_path):
    consortium = Consortium(tmp_path, sums_total=1)
    assert [conduct(consortium).ended for _ in range(3)] == ["done"] * 3
    (line,) = Budget(tmp_path / SITE).lines()
    assert (line.opening.cohort, line.opening.masked, line.opening.noisy) == (SITES, False, False)
    assert line.opening.version == Ledger(tmp_path / SITE).answered()[0].version
    assert reasons(conduct(consortium, 0.6)) == {REASONS["budget"]}
    assert "budget" not in PASSING
    assert conduct(consortium).ended == "done"


def test_a_study_over_budget_is_refused_before_anything_is_computed(tmp_path):
    consortium = Consortium(tmp_path, epsilon_total=1.0)
    asked = []

    def tamper(site, data, service):
        asked.append(open_message(data, consortium.trust).head["kind"])
        return service(data)

    assert reasons(conduct(consortium, tamper=tamper)) == {REASONS["budget"]}
    assert set(asked) == {"hello"}
    (refused,) = [entry for entry in entries(tmp_path / SITE / "audit.jsonl") if entry["what"] == "refused"]
    assert "has no epsilon" in refused["detail"]
    assert not (tmp_path / SITE / "budget.jsonl").exists()
    assert not (tmp_path / SITE / "state").exists()


def test_a_total_of_one_admits_one_study_at_one_again_and_again_and_no_other(tmp_path):
    pytest.importorskip("opendp")
    consortium = Consortium(tmp_path, epsilon_total=1.0, min_new_samples=0)
    for _ in range(2):
        assert REASONS["budget"] not in reasons(conduct(consortium, epsilon=1))
        (opened,) = Budget(tmp_path / SITE).openings()
        assert opened.epsilon == pytest.approx(1.0, abs=1e-9)
    assert reasons(conduct(consortium, 0.6, epsilon=0.1)) == {REASONS["budget"]}
    assert reasons(conduct(consortium, epsilon=1.1)) == {REASONS["budget"]}
    write_table(consortium.table(SITE), 77)
    assert reasons(conduct(consortium, epsilon=1)) == {REASONS["budget"]}, "another version is another opening"


def test_a_crash_after_the_charge_and_before_the_answer_leaves_the_charge(tmp_path, monkeypatch):
    consortium = Consortium(tmp_path, sums_total=1)
    written = []

    def crash(store, *_):
        written.append((store.folder.parent.parent / "budget.jsonl").exists())
        raise OutputError("the power is cut")

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "save", crash)
        assert conduct(consortium).ended != "done"
    assert written
    assert all(written), "on the disk before the answer is"
    assert len(Budget(tmp_path / SITE).lines()) == 1
    assert reasons(conduct(consortium, 0.6)) == {REASONS["budget"]}
    assert conduct(consortium).ended == "done"
    assert len(Budget(tmp_path / SITE).lines()) == 1


def test_a_masked_sum_with_noise_is_one_opening_in_all_runs_and_noise_that_was_lost_is_paid_for_anew(tmp_path):
    pytest.importorskip("opendp")
    consortium = Consortium(tmp_path, epsilon_total=1.0)
    privacy = "epsilon = 1\ndelta = 1e-5\nmin_samples = 20"
    for _ in range(2):
        consortium.finish(consortium.masked_run(privacy=privacy))
        (one,) = Budget(tmp_path / SITE).openings()
        assert (one.masked, one.cohort, bool(one.draw)) == (True, SITES, True)
    shutil.rmtree(SiteFolder(tmp_path / SITE).noise)
    services = consortium.services()
    outcome = consortium.run_attempt(consortium.masked_run(privacy=privacy), Loopback(services))
    close(services)
    assert {one["reason"] for one in outcome.troubles} == {REASONS["budget"]}  # of others, too: all draw anew
    assert len(Budget(tmp_path / SITE).lines()) == 1


def test_an_approval_is_of_one_draw_of_noise(tmp_path):
    """Else a coordinator and one site, whose data change again and again, would have ours told again and again."""
    consortium = Consortium(tmp_path)
    home, other = tmp_path / SITE, next(site for site in SITES if site != SITE)
    settings = SiteFolder(home).settings
    settings.write_text(settings.read_text().replace("approve_all = true", "approve_all = false"))
    privacy, soon = "epsilon = 1\ndelta = 1e-5\nmin_samples = 20", 'on_missing = "stop"\ntimeout = 5.0'

    def attempt() -> Outcome:
        services = consortium.services()
        outcome = consortium.run_attempt(consortium.masked_run(privacy=privacy, policy=soon), Loopback(services))
        close(services)
        return outcome

    approve(home, consortium.masked_run(privacy=privacy, policy=soon).study().text)
    assert [attempt().ended for _ in range(2)] == ["done", "done"]
    write_table(consortium.table(other), 77)
    assert [one["site"] for one in attempt().troubles] == [SITE]
    assert len(Budget(home).lines()) == 1
    assert any("other noise" in str(entry.get("detail")) for entry in entries(home / "audit.jsonl"))
    approve(home, consortium.masked_run(privacy=privacy, policy=soon).study().text)
    assert attempt().ended == "done"
    assert len(Budget(home).lines()) == 2


def test_nothing_leaves_that_cannot_be_charged(tmp_path):
    consortium = Consortium(tmp_path)
    (tmp_path / SITE / "budget.lock").mkdir()
    assert reasons(conduct(consortium)) == {REASONS["internal"]}
    assert not [entry for entry in entries(tmp_path / SITE / "audit.jsonl") if "cost" in entry.get("left", "")]


def test_a_budget_of_an_older_copy_is_noticed_when_a_run_begins(tmp_path):
    consortium = Consortium(tmp_path)
    conduct(consortium)
    older = (tmp_path / SITE / "budget.jsonl").read_bytes()
    conduct(consortium, 0.6)
    (tmp_path / SITE / "budget.jsonl").write_bytes(older)
    assert reasons(conduct(consortium)) == {REASONS["restored"]}
    Budget(tmp_path / SITE).accept(by="the engineer")
    assert conduct(consortium).ended == "done"
    assert len(Budget(tmp_path / SITE).openings()) == 2


def test_a_masked_sum_over_other_sites_waits_for_people_who_say_so(tmp_path):
    consortium = Consortium(tmp_path)
    home, study = tmp_path / SITE, consortium.masked_run().study()
    settings = read_site(home)
    gate, data = Gate(SiteFolder(home), settings), look_at_data(settings, home)
    Ledger(home).rows(data)
    gate.note(study, data, SITES, "run.1")
    gate.check_budget(study, data, SITES, "the coordinator")
    four = (*SITES, "cairo")
    with pytest.raises(Refused) as refusal:
        gate.check_budget(study, data, four, "the coordinator")
    assert (refusal.value.code, "--despite-difference" in refusal.value.detail) == ("cohort", True)
    assert [one.sha for one in Approvals(home).pending()] == [study.sha256]
    with pytest.raises(Refused):
        gate.note(study, data, four, "run.2")
    approve(home, study.text, despite=True)
    gate.check_budget(study, data, four, "the coordinator")
    gate.note(study, data, four, "run.2")
    assert [one.cohort for one in Budget(home).openings()] == [SITES, four]


def test_fewer_sites_are_another_opening(tmp_path):
    consortium = Consortium(tmp_path)
    conduct(consortium)
    consortium.sites = SITES[1:]
    conduct(consortium)
    assert [one.cohort for one in Budget(tmp_path / SITE).openings()] == [SITES, SITES[1:]]


def test_with_noise_a_table_may_change_by_a_row_and_what_it_says_without_noise_is_still_compared(tmp_path, monkeypatch):
    """The answer with noise for the version in between must not make the exact ones comparable."""
    pytest.importorskip("opendp")
    monkeypatch.setattr(site_request, "APPROVAL_PAUSE", 0.01)
    consortium = Consortium(tmp_path)
    assert conduct(consortium).ended == "done"
    rows = consortium.table(SITE).read_text().splitlines(keepends=True)
    consortium.table(SITE).write_text("".join(rows[:-1]))
    assert not reasons(conduct(consortium, epsilon=1))
    one, two = Budget(tmp_path / SITE).openings()
    assert (one.noisy, two.noisy) == (False, True)
    assert one.version != two.version
    assert [each.version for each in Ledger(tmp_path / SITE).answered()] == [one.version]
    waits = []

    def tamper(site, data, service):
        reply = service(data)
        waits.append(open_message(reply, consortium.trust).head.get("code"))
        return reply

    run, services = consortium.run(QUICK), consortium.services()
    head = {"stopped": lambda: "unapproved" in waits, "signer": consortium.server, "trust": consortium.trust}
    run_attempt(run, Loopback(services, tamper), attempt="a", **head)
    close(services)
    assert "unapproved" in waits
    assert len(Budget(tmp_path / SITE).openings()) == 2


# --- folders of before ------------------------------------------------------------------------------------------------


def as_before(home: Path) -> None:
    """What an earlier silograph left of answered studies: a ledger, a log without costs, and no budget."""
    for name in ("budget.jsonl", "budget.lock"):
        (home / name).unlink()
    told = [entry for entry in entries(home / "audit.jsonl") if entry["what"] != "spent"]
    for name in ("audit.jsonl", "audit.head"):
        (home / name).unlink()
    log = AuditLog(home / "audit.jsonl")
    for entry in told:
        log.append({name: entry[name] for name in entry if name not in ("sequence", "time", "previous", "hash")})


def test_a_folder_of_before_is_migrated_once_and_logged(tmp_path):
    consortium = Consortium(tmp_path)
    conduct(consortium)
    conduct(consortium)
    conduct(consortium, 0.6)
    home = tmp_path / SITE
    as_before(home)
    (answered,) = Ledger(home).answered()
    lines = Budget(home).lines()
    assert {line.opening.study for line in lines} == set(answered.studies)
    for line in lines:
        one = line.opening
        assert (one.cohort, one.masked, one.noisy, one.version) == ((), False, False, answered.version)
        assert one.run in answered.studies[one.study]
        assert line.time == answered.first
        assert json.loads((home / "budget.jsonl").read_text().splitlines()[0])["cohort"] == "unknown"
    assert Budget(home).lines() == lines
    log = list(entries(home / "audit.jsonl"))
    assert [entry["what"] for entry in log if entry["what"] in ("migrated", "spent")] == ["migrated", "spent", "spent"]
    (migrated,) = [entry["detail"] for entry in log if entry["what"] == "migrated"]
    assert migrated == "2 openings of an earlier silograph, by the ledger: open, without noise"
    assert spent_by(Budget(home).openings()).sums == 2


def test_a_folder_in_which_nothing_was_answered_has_nothing_to_migrate(tmp_path):
    consortium = Consortium(tmp_path)
    assert Budget(tmp_path / SITE).lines() == []
    assert not (tmp_path / SITE / "budget.jsonl").exists()
    del consortium


# --- persons ----------------------------------------------------------------------------------------------------------


def tables_of_persons(home: Path, **how) -> SiteSettings:
    """Two tables: ann has 3 + 1 rows, bob 2, carl 4, of which one does not count."""
    names = {"one.csv": ["ann", "ann", "ann", "bob", "bob"], "two.csv": ["carl"] * 4 + ["ann"]}
    for file, persons in names.items():
        rows = np.random.default_rng(len(file)).normal(size=(5, 2))
        lines = [
            f"{x},{who},{y},{int(k > 0 or file == 'one.csv')}"
            for k, ((x, y), who) in enumerate(zip(rows, persons, strict=True))
        ]
        (home / file).write_text("a,subject,b,good\n" + "\n".join(lines) + "\n")
    given = {"data": (Path("one.csv"), Path("two.csv")), "person": "subject", "drop": ("good",), **how}
    return SiteSettings(name=SITE, federation="f", server="s", **given)


def test_the_rows_and_tables_of_the_person_who_has_most_are_counted(tmp_path):
    settings = tables_of_persons(tmp_path)
    data = look_at_data(settings, tmp_path)
    assert data.names == ("a", "b"), "the column is no node"
    most = most_of_one(SiteFolder(tmp_path), "subject", data)
    assert (most.rows, most.tables) == (4, 2)
    (kept,) = (tmp_path / "ledger").glob("*.persons")
    assert json.loads(kept.read_text()) == {"column": "subject", "rows": 4, "tables": 2}
    kept.write_text('{"column": "subject", "rows": 7, "tables": 1}')
    assert most_of_one(SiteFolder(tmp_path), "subject", data).rows == 7, "read once"


def test_rows_that_do_not_count_are_nobodys(tmp_path):
    settings = tables_of_persons(tmp_path, data=Path("two.csv"), drop=(), keep_rows="good")
    data = look_at_data(settings, tmp_path)
    most = most_of_one(SiteFolder(tmp_path), "subject", data)
    assert (most.rows, most.tables) == (3, 1)


@pytest.mark.parametrize(("unit", "most"), [("row", 4), ("table", 2)])
def test_the_unit_of_the_study_says_what_is_counted(tmp_path, unit, most):
    text = 'name = "s"\nnodes = ["a", "b"]\n[privacy]\nepsilon = 1\ndelta = 1e-5\nmin_samples = 5\n'
    study = parse_study(f'{text}unit = "{unit}"\n'.encode(), source="study")
    settings = tables_of_persons(tmp_path)
    data = look_at_data(settings, tmp_path)
    assert units_of_one(SiteFolder(tmp_path), settings, data, study) == most
    without = tables_of_persons(tmp_path, person=None, drop=("good", "subject"))
    assert units_of_one(SiteFolder(tmp_path), without, data, study) == 1


def test_a_row_without_a_person_and_a_column_that_is_not_there_are_told(tmp_path):
    settings = tables_of_persons(tmp_path)
    (tmp_path / "two.csv").write_text("a,subject,b\n1,ann,2\n3,,4\n")
    with pytest.raises(Refused, match=r"two\.csv, sample 2, column 'subject': expected whose row it is") as refusal:
        most_of_one(SiteFolder(tmp_path), "subject", look_at_data(settings, tmp_path))
    assert refusal.value.code == "data"
    (tmp_path / "two.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(Refused, match=r"two\.csv: no column is called 'subject'\. Correct \[table\] person"):
        most_of_one(SiteFolder(tmp_path), "subject", look_at_data(settings, tmp_path))


def test_a_column_to_drop_that_becomes_the_persons_leaves_the_version(tmp_path):
    """So that approvals hold, and nothing that was answered for looks like another version."""
    settings = tables_of_persons(tmp_path)
    dropped = tables_of_persons(tmp_path, person=None, drop=("good", "subject"))
    assert version_of(settings, "sha") == version_of(dropped, "sha")
    both = tables_of_persons(tmp_path, drop=("good", "subject"))
    assert version_of(both, "sha") == version_of(dropped, "sha")


def test_the_square_of_a_persons_rows_is_charged(tmp_path):
    pytest.importorskip("opendp")
    consortium = Consortium(tmp_path)
    table = consortium.table(SITE)
    head, *rows = table.read_text().splitlines()
    lines = [f"{row},p{number // 2}" for number, row in enumerate(rows)]
    table.write_text("\n".join([f"{head},subject", *lines]) + "\n")
    settings = (tmp_path / SITE / "site.toml").read_text()
    (tmp_path / SITE / "site.toml").write_text(settings.replace('# person = "subject"', 'person = "subject"'))
    assert read_site(tmp_path / SITE).person == "subject"
    conduct(consortium, epsilon=1)
    (one,) = Budget(tmp_path / SITE).openings()
    assert (one.most, one.person_rho) == (2, 4 * one.rho)
    assert look_at_data(read_site(tmp_path / SITE), tmp_path / SITE).names == NODES
