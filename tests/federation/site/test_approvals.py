"""Approvals: of exactly one file each, counted, revocable, and safe from what a coordinator may send."""

import json
import os
import subprocess
import sys
import time

import pytest

from silograph.errors import OutputError, ParameterError, ProtocolError
from silograph.federation.site.approvals import LARGEST_STUDY, Approvals, sha_of

STUDY = "[study]\nname = 'Ålesund'\r\n\tmethod = 'exact'\n"
SHA, OTHER = sha_of(STUDY.encode()), "ab" * 32
COUNTER = """
import sys
from pathlib import Path
from silograph.federation.site.approvals import Approvals
approvals = Approvals(Path(sys.argv[1]))
for _ in range(int(sys.argv[3])):
    print(approvals.count_round(sys.argv[2]), flush=True)
"""


def counting(folder, n_rounds):
    command = [sys.executable, "-c", COUNTER, str(folder), OTHER, str(n_rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


# --- approval ---------------------------------------------------------------------------------------------------------


def test_a_study_is_approved_by_its_bytes_and_no_other(tmp_path):
    approvals = Approvals(tmp_path)
    assert not approvals.is_approved(SHA)
    approvals.approve(SHA, name="Ålesund", by="kari")
    assert approvals.is_approved(SHA)
    assert not approvals.is_approved(sha_of(STUDY.encode() + b"\n"))
    (approval,) = approvals.approved()
    assert (approval.sha, approval.name, approval.by, approval.rounds_used) == (SHA, "Ålesund", "kari", 0)
    assert approval.when.endswith("+00:00")


def test_a_revocation_holds_at_once_and_for_whoever_looks(tmp_path):
    people, job = Approvals(tmp_path), Approvals(tmp_path)
    people.approve(SHA, name="a", by="b")
    assert job.is_approved(SHA)
    people.revoke(SHA)
    assert not job.is_approved(SHA)
    with pytest.raises(ParameterError, match=rf"{SHA[:8]} is not approved .* nothing to revoke"):
        people.revoke(SHA)


def test_rounds_stay_counted_over_revocation_and_approval_unless_approved_afresh(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.approve(SHA, name="a", by="b")
    assert [approvals.count_round(SHA) for _ in range(3)] == [1, 2, 3]
    approvals.revoke(SHA)
    approvals.approve(SHA, name="a", by="b")
    assert approvals.approved()[0].rounds_used == 3
    approvals.approve(SHA, name="a", by="b", fresh=True)
    assert approvals.rounds_used(SHA) == 0
    assert approvals.count_round(SHA) == 1


def test_approvals_are_listed_oldest_first(tmp_path):
    approvals = Approvals(tmp_path)
    shas = [sha_of(str(k).encode()) for k in range(5)]
    for sha in shas:
        approvals.approve(sha, name="n" * 600, by="b")
    assert [approval.sha for approval in approvals.approved()] == shas
    assert len(approvals.approved()[0].name) == 500


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": {}}', f'{{"{OTHER}": {{"name": 1}}}}', f'{{"{OTHER}": true}}'])
def test_damaged_approvals_approve_nothing(text, tmp_path):
    (tmp_path / "approvals.json").write_text(text)
    for ask in (Approvals(tmp_path).is_approved, Approvals(tmp_path).find):
        with pytest.raises(ParameterError, match=r"approvals\.json: is damaged\. Put back a copy"):
            ask(OTHER)
    with pytest.raises(ParameterError, match="damaged"):
        Approvals(tmp_path).approve(SHA, name="a", by="b")
    assert (tmp_path / "approvals.json").read_text() == text, "nobody's approvals are written over"


@pytest.mark.parametrize("sha", ["", "../../etc/passwd", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "ab" * 31 + "/x"])
def test_only_a_sha_256_becomes_a_files_name(sha, tmp_path):
    approvals = Approvals(tmp_path)
    for ask in (
        lambda: approvals.is_approved(sha),
        lambda: approvals.approve(sha, name="a", by="b"),
        lambda: approvals.approve(sha, name="a", by="b", fresh=True),
        lambda: approvals.revoke(sha),
        lambda: approvals.note_pending(sha, "", asked_by="c"),
        lambda: approvals.count_round(sha),
        lambda: approvals.rounds_used(sha),
    ):
        with pytest.raises(ParameterError, match="expected a SHA-256"):
            ask()
    assert [path.name for path in tmp_path.rglob("*")] in ([], ["approvals.lock"])


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere.*cannot be written"):
        Approvals(tmp_path / "nowhere").approve(SHA, name="a", by="b")
    assert not Approvals(tmp_path / "nowhere").is_approved(SHA)


# --- studies that wait ------------------------------------------------------------------------------------------------


def test_a_study_that_was_asked_for_waits_byte_for_byte_until_it_is_approved(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="coordinator")
    (waiting,) = approvals.pending()
    assert (waiting.sha, waiting.asked_by) == (SHA, "coordinator")
    assert waiting.path.read_bytes() == STUDY.encode()
    assert not approvals.is_approved(SHA)
    approvals.approve(SHA, name="a", by="b")
    assert approvals.pending() == []
    assert list((tmp_path / "pending").iterdir()) == []
    approvals.note_pending(SHA, STUDY, asked_by="coordinator")
    assert approvals.pending() == [], "it is approved"


def test_asking_again_changes_nothing(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="first")
    before = approvals.pending()
    approvals.note_pending(SHA, STUDY, asked_by="second")
    assert approvals.pending() == before


def test_the_oldest_of_too_many_make_room(tmp_path):
    approvals = Approvals(tmp_path)
    texts = [f"n = {k}" for k in range(53)]
    for text in texts:
        approvals.note_pending(sha_of(text.encode()), text, asked_by="c")
    assert [study.path.read_text() for study in approvals.pending()] == texts[3:]
    assert len(list((tmp_path / "pending").iterdir())) == 100


def test_a_text_with_another_sha_is_not_shown_for_approval(tmp_path):
    with pytest.raises(ProtocolError, match="its text has another SHA-256"):
        Approvals(tmp_path).note_pending(OTHER, STUDY, asked_by="c")
    assert Approvals(tmp_path).pending() == []


def test_a_waiting_text_that_was_altered_is_not_shown_and_can_come_again(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="c")
    (tmp_path / "pending" / f"{SHA}.toml").write_text("harmless = true")
    assert approvals.pending() == []
    approvals.note_pending(SHA, STUDY, asked_by="c")
    assert approvals.pending()[0].path.read_bytes() == STUDY.encode()


def test_a_waiting_text_outlives_the_note_beside_it(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="c")
    (tmp_path / "pending" / f"{SHA}.json").write_text("")
    assert [(study.sha, study.asked_by) for study in approvals.pending()] == [(SHA, "unknown")]


@pytest.mark.parametrize("length", [LARGEST_STUDY + 1, LARGEST_STUDY // 2 + 1])
def test_a_study_above_a_megabyte_is_not_kept(length, tmp_path):
    text = "é" * length if length < LARGEST_STUDY else "e" * length
    with pytest.raises(ProtocolError, match="expected at most 1000000 bytes"):
        Approvals(tmp_path).note_pending(sha_of(text.encode()), text, asked_by="c")
    fits = "e" * LARGEST_STUDY
    Approvals(tmp_path).note_pending(sha_of(fits.encode()), fits, asked_by="c")


@pytest.mark.parametrize("character", ["\x1b[2J", "\x00", "\x9b", "\u202e", "\u2066", "\x08", "a\rb", "\x7f"])
def test_a_study_that_a_terminal_would_show_otherwise_is_not_kept(character, tmp_path):
    text = f"a = 1\nb = '{character}'\n"
    with pytest.raises(ProtocolError, match="line 2: expected text that can be read"):
        Approvals(tmp_path).note_pending(sha_of(text.encode()), text, asked_by="c")
    assert Approvals(tmp_path).pending() == []


def test_half_written_files_are_no_studies(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="c")
    for name in (f"{OTHER}.toml.new", "notes.toml", f"{OTHER}.json"):
        (tmp_path / "pending" / name).write_text("x")
    assert [study.sha for study in approvals.pending()] == [SHA]


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_rounds_counted_by_several_processes_are_all_counted_once(tmp_path):
    counters = [counting(tmp_path, 100) for _ in range(4)]
    said = [int(line) for counter in counters for line in counter.communicate()[0].splitlines()]
    assert sorted(said) == list(range(1, 401))
    assert Approvals(tmp_path).rounds_used(OTHER) == 400


def test_a_killed_process_loses_no_round_that_it_had_counted(tmp_path):
    for _ in range(5):
        counter = counting(tmp_path, 1_000_000)
        heard = [counter.stdout.readline() for _ in range(30)]
        counter.kill()
        heard += counter.communicate()[0].splitlines(keepends=True)
        said = [int(line) for line in heard if line.endswith("\n")]
        assert Approvals(tmp_path).rounds_used(OTHER) - said[-1] in (0, 1)


def test_counting_waits_for_no_disk_and_takes_no_time_to_speak_of(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: pytest.fail("waited for the disk"))
    approvals, seconds = Approvals(tmp_path), []
    for _ in range(200):
        begin = time.perf_counter()
        approvals.count_round(SHA)
        seconds.append(time.perf_counter() - begin)
    assert sorted(seconds)[100] < 5e-3  # 0.4 ms on ext4; busy machines take longer


@pytest.mark.parametrize("text", ["", "-1", "many", "1.5", "9" * 30, " 1"])
def test_a_damaged_counter_is_never_taken_for_none(text, tmp_path):
    (tmp_path / "rounds").mkdir()
    (tmp_path / "rounds" / OTHER).write_text(text)
    for ask in (Approvals(tmp_path).rounds_used, Approvals(tmp_path).count_round):
        with pytest.raises(ParameterError, match=r"expected a number of rounds, got .* approve the study afresh"):
            ask(OTHER)
    Approvals(tmp_path).approve(OTHER, name="a", by="b", fresh=True)
    assert Approvals(tmp_path).count_round(OTHER) == 1


# --- short names ------------------------------------------------------------------------------------------------------


def test_a_study_is_found_by_the_beginning_of_its_sha(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="c")
    approvals.approve(OTHER, name="a", by="b")
    for sha in (SHA, OTHER):
        assert {approvals.find(prefix) for prefix in (sha[:8], sha, sha[:9].upper(), f" {sha[:20]}\n")} == {sha}


def test_what_is_unknown_ambiguous_or_too_short_is_told(tmp_path):
    approvals = Approvals(tmp_path)
    twin = "ab" * 31 + "cd"
    for sha in (OTHER, twin):
        approvals.approve(sha, name="a", by="b")
    with pytest.raises(ParameterError, match=f"2 studies begin so. Write more of one: {OTHER}, {twin}"):
        approvals.find("abababab")
    with pytest.raises(ParameterError, match="no approved or pending study begins so"):
        approvals.find("12345678")
    for short in ("", "abababa", "xyzxyzxyz", "ab" * 33):
        with pytest.raises(ParameterError, match="expected 8 to 64 of the digits"):
            approvals.find(short)


def test_what_was_written_is_readable_json(tmp_path):
    Approvals(tmp_path).approve(SHA, name="a", by="b")
    assert set(json.loads((tmp_path / "approvals.json").read_text())[SHA]) == {"name", "when", "by"}
