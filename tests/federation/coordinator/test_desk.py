"""What the lead may ask of the server from anywhere, and that nothing else of the server is in reach."""

import base64
import hashlib
import json
import time

import pytest

from silograph._util.locks import Lock, is_held, lock
from silograph.errors import SilosError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.orders import give_order, read_order, write_end
from silograph.federation.coordinator.run import Outcome
from silograph.federation.versions import VERSION
from testing.consortium import NODES, SITES, Consortium
from testing.lead import OTHER, RUN, STUDY, Lead


@pytest.fixture
def lead(tmp_path):
    return Lead(tmp_path)


def test_a_run_is_begun_once_however_often_it_is_asked_for(lead):
    assert [lead.begin()["run"] for _ in range(3)] == [RUN] * 3
    assert [run["run"] for run in lead.ask("status")["runs"]] == [RUN]
    assert read_order(lead.run()).number == 1
    assert (lead.run().sites, lead.run().nodes) == (SITES, NODES)
    assert lead.run().study().text == STUDY.encode()


def test_of_another_study_the_same_name_begins_nothing(lead):
    lead.begin()
    other = STUDY.replace('"test"', '"other"')
    assert "a run of another study" in lead.refused("begin", run=RUN, study=other, nodes=list(NODES), source="s.toml")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"study": STUDY.replace("rounds", "ronds")}, "study.toml"),
        ({"study": 'sites = ["kyoto", "paris"]\n' + STUDY}, "paris are not of this federation"),
        ({"nodes": ["a", "b"]}, "not those to which the sites were invited"),
        ({"nodes": [1, 2]}, "expected a name in quotes"),
        ({"study": "x" * 1_000_001}, "at most 1 MB"),
    ],
)
def test_a_study_that_cannot_run_is_refused_before_anything_is_written(lead, change, reason):
    asked = {"run": RUN, "study": STUDY, "nodes": list(NODES), "source": "study.toml"} | change
    assert reason in lead.refused("begin", **asked)
    assert lead.ask("status")["runs"] == []


def test_sites_that_have_not_joined_are_named(tmp_path):
    lead = Lead(tmp_path, keys=("kyoto", "oslo"))
    assert "lima: not approved yet" in lead.refused(
        "begin", run=RUN, study=STUDY, nodes=list(NODES), source="study.toml"
    )


@pytest.mark.parametrize("name", ["..", "../server", "0" * 15, "0" * 17, "G" * 16, "", None, 7, ["0" * 16], RUN + "\n"])
def test_a_run_that_is_no_name_is_no_path(lead, name):
    for what in ("begin", "look", "files", "fetch", "abort", "forget"):
        assert "expected 16 hexadecimal digits" in lead.refused(
            what, run=name, study=STUDY, source="", file="", nodes=[]
        )


def test_a_run_that_is_not_there_is_said_to_be_so(lead):
    for what in ("look", "files", "abort", "forget"):
        assert "the server has no such run" in lead.refused(what, run=OTHER)


@pytest.mark.parametrize("asked", [None, [], "status", {}, {"ask": "shell"}, {"ask": ["status"]}])
def test_what_is_no_question_has_no_answer(lead, asked):
    assert "cannot be asked this" in lead.desk.answer(asked)["error"]


def test_a_version_that_does_not_go_with_the_servers_is_refused_by_name(lead):
    error = lead.desk.answer({"ask": "status", "version": "99.1.0"})["error"]
    assert VERSION in error
    assert "99.1.0" in error


# --- the results ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run that has ended well, conducted without an engine."""
    folder = tmp_path_factory.mktemp("done")
    consortium, lead = Consortium(folder), Lead(folder)
    lead.begin()
    consortium.finish(lead.run())
    return lead


def fetched(lead, file):
    data = b""
    while len(data) < file["size"]:
        answer = lead.ask("fetch", run=RUN, file=file["name"], start=len(data))
        data += base64.b64decode(answer["data"])
    return data


def test_results_arrive_as_they_are(done):
    files = done.ask("files", run=RUN)["files"]
    assert {"run.json", "history.csv", "history.sqlite", "consensus/edges.csv"} <= {file["name"] for file in files}
    for file in files:
        data = fetched(done, file)
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
        assert (done.run().results / file["name"]).read_bytes() == data


@pytest.mark.parametrize(
    "name", ["../about.json", "/etc/passwd", "", "consensus", "../../../server/startup/server.key"]
)
def test_nothing_but_results_is_fetched(done, name):
    assert "has no result" in done.refused("fetch", run=RUN, file=name, start=0)


def test_a_link_among_the_results_is_not_followed(done, tmp_path):
    (tmp_path / "secret").write_text("secret")
    link = done.run().results / "link"
    link.symlink_to(tmp_path / "secret")
    try:
        assert "link" not in {file["name"] for file in done.ask("files", run=RUN)["files"]}
        assert "has no result" in done.refused("fetch", run=RUN, file="link", start=0)
    finally:
        link.unlink()


def test_a_look_tells_what_is_new_and_no_more(done):
    first = done.ask("look", run=RUN)
    assert first["state"] == "done"
    assert [event["kind"] for event in first["events"]] == ["started", "finished"]
    n_rounds = len(first["rounds"])
    assert n_rounds > 2
    known = {"after": first["events"][0]["id"], "skip": n_rounds - 1, "generation": first["generation"]}
    second = done.ask("look", run=RUN, **known)
    assert [event["kind"] for event in second["events"]] == ["finished"]
    assert second["rounds"] == first["rounds"][-1:]
    anew = done.ask("look", run=RUN, **(known | {"generation": 7}))  # what was known is of another generation
    assert anew["rounds"] == first["rounds"]


def test_of_a_run_that_is_not_done_there_is_nothing_to_fetch(lead):
    lead.begin()
    assert "is not done" in lead.refused("files", run=RUN)


# --- to stop, to go on, to remove -------------------------------------------------------------------------------------


def test_a_run_that_was_given_up_or_stopped_goes_on_when_it_is_asked_for_again(lead):
    lead.begin()
    lead.ask("abort", run=RUN)
    assert lead.state() == "abandoned"
    lead.begin()
    assert lead.state() == "waiting"
    write_end(lead.run(), read_order(lead.run()), "lima refuses")
    assert lead.state() == "stopped"
    lead.begin()
    assert (lead.state(), read_order(lead.run()).number) == ("waiting", 4)


def test_a_run_that_is_wanted_is_not_removed(lead):
    lead.begin()
    assert "Give it up first" in lead.refused("forget", run=RUN)


def test_a_run_whose_processes_have_not_ended_is_not_removed(lead):
    lead.begin()
    lead.ask("abort", run=RUN)
    lock = Lock(lead.run().lock)
    assert lock.take()
    assert "have not ended yet" in lead.refused("forget", run=RUN)
    lock.release()
    lead.ask("forget", run=RUN)
    assert lead.ask("status")["runs"] == []
    assert not lead.federation.run(RUN).exists()


def test_the_name_of_a_removed_run_stays_taken(lead):
    """Sites remember which runs they answered, and would answer none of that name again."""
    lead.begin()
    lead.ask("abort", run=RUN)
    lead.ask("forget", run=RUN)
    asked = {"run": RUN, "study": STUDY, "nodes": list(NODES), "source": "study.toml"}
    assert "was removed" in lead.refused("begin", **asked)


def test_a_run_that_is_done_cannot_be_given_up(lead):
    lead.begin()
    lead.run().write_outcome(Outcome(attempt="a", ended="done"))
    assert "is done already" in lead.refused("abort", run=RUN)


def test_a_run_that_cannot_be_read_hides_no_other(lead):
    lead.begin()
    lead.begin(OTHER)
    (lead.run(OTHER).folder / "about.json").write_text("{")
    runs = {run["run"]: run for run in lead.ask("status")["runs"]}
    assert (runs[RUN]["state"], runs[OTHER]["state"]) == ("waiting", "stopped")
    assert "the run cannot be read" in runs[OTHER]["why"]


# --- when a site was last heard of ------------------------------------------------------------------------------------


def test_last_seen_is_the_last_answer_of_any_kind(lead):
    lead.begin()
    now = time.time()
    lead.federation.status.write_text(
        json.dumps({"attempt": "a", "sites": {"lima": {"version": VERSION, "data": "ready", "at": now - 500}}})
    )
    with History(lead.run().history) as history:
        history.see_site("oslo", state="answered")
    lead.heard = {"kyoto": now - 3}
    sites = {site["site"]: site for site in lead.ask("status")["sites"]}
    assert sites["kyoto"]["last_seen"] == now - 3
    assert sites["lima"]["last_seen"] == now - 500
    assert abs(sites["oslo"]["last_seen"] - now) < 60
    assert sites["oslo"]["heard"] is None
    lead.heard = {"lima": now - 2}
    assert {site["site"]: site["last_seen"] for site in lead.ask("status")["sites"]}["lima"] == now - 2


def test_a_site_of_another_version_is_told_of_when_a_run_begins(lead):
    major, minor, *_ = VERSION.split(".")
    about = {"data": "ready", "at": 0.0}
    told = {"lima": {"version": f"{major}.{minor}.99", **about}, "oslo": {"version": "99.0.0", **about}}
    lead.federation.status.write_text(json.dumps({"attempt": "a", "sites": told}))
    notes = lead.begin()["notes"]
    assert len(notes) == 2
    assert all(VERSION in note for note in notes)
    assert "They go together" in notes[0]
    assert "do not go together" in notes[1]
    give_order(lead.run(), wanted=True)


def test_torn_files_of_one_run_or_of_the_sites_are_no_reason_to_tell_nothing(lead):
    lead.begin()
    lead.begin(run=OTHER)
    (lead.run().folder / "outcome.json").touch()
    lead.federation.status.touch()
    told = {run["run"]: run for run in lead.ask("status")["runs"]}
    assert (told[RUN]["state"], told[OTHER]["state"]) == ("stopped", "waiting")
    assert "outcome.json: cannot be read" in told[RUN]["why"]


def test_who_is_told_of_an_error_has_begun_nothing(lead, monkeypatch):
    def broken(*_):
        raise SilosError("no notes")

    monkeypatch.setattr(lead.desk, "_version_notes", broken)
    assert lead.refused("begin", run=RUN, study=STUDY, nodes=list(NODES), source="study.toml") == "no notes"
    assert lead.state() == "stopped"
    assert read_order(lead.run()) is None


def test_a_removal_that_was_killed_is_finished_later(lead, tmp_path):
    lead.begin()
    left = lead.run().folder.with_name(f".{RUN}.forgotten")
    lead.run().folder.rename(left)
    Lead(tmp_path)
    assert not left.exists()


def test_a_copy_that_is_under_way_is_no_result(lead):
    lead.begin()
    lead.run().results.mkdir()
    with History(lead.run().history) as history:
        history.add_event("finished")
    for name in ("run.json", ".history.x.sqlite"):
        (lead.run().results / name).touch()
    lead.run().write_outcome(Outcome(attempt="a", ended="done"))
    assert {file["name"] for file in lead.ask("files", run=RUN)["files"]} == {"run.json", "history.sqlite"}


def test_any_number_may_look_whether_a_lock_is_held(tmp_path):
    held = tmp_path / "lock"
    assert not is_held(held)
    held.touch()
    with held.open() as other:
        lock(other, shared=True)  # as one who looks at the same moment
        assert not is_held(held)
    mine = Lock(held)
    assert mine.take()
    assert is_held(held)
