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
SHA, OTHER, TABLE = sha_of(STUDY.encode()), "ab" * 32, "cd" * 32
GIVEN = {"name": "Ålesund", "by": "kari", "table": TABLE}
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
    assert approvals.get(SHA) is None
    approvals.approve(STUDY.encode(), **GIVEN)
    assert approvals.get(sha_of(STUDY.encode() + b"\n")) is None
    (approval,) = approvals.approved()
    assert approval == approvals.get(SHA)
    assert (approval.sha, approval.name, approval.by, approval.table) == (SHA, "Ålesund", "kari", TABLE)
    assert not approval.despite
    assert approval.when.endswith("+00:00")


def test_a_study_is_approved_for_one_version_of_the_table_at_a_time(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.approve(STUDY.encode(), **GIVEN)
    approvals.approve(STUDY.encode(), **GIVEN | {"table": OTHER}, despite=True)
    (approval,) = approvals.approved()
    assert (approval.table, approval.despite) == (OTHER, True)


def test_a_revocation_holds_at_once_and_for_whoever_looks(tmp_path):
    people, job = Approvals(tmp_path), Approvals(tmp_path)
    people.approve(STUDY.encode(), **GIVEN)
    assert job.get(SHA) is not None
    people.revoke(SHA)
    assert job.get(SHA) is None
    with pytest.raises(ParameterError, match=rf"{SHA} is not approved .* nothing to revoke"):
        people.revoke(SHA)


def test_rounds_stay_counted_over_revocation_and_approval_unless_approved_afresh(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.approve(STUDY.encode(), **GIVEN)
    assert [approvals.count_round(SHA) for _ in range(3)] == [1, 2, 3]
    approvals.revoke(SHA)
    approvals.approve(STUDY.encode(), **GIVEN)
    assert approvals.rounds_used(SHA) == 3
    approvals.approve(STUDY.encode(), **GIVEN, fresh=True)
    assert approvals.rounds_used(SHA) == 0
    assert approvals.count_round(SHA) == 1


def test_approvals_are_listed_oldest_first(tmp_path):
    approvals = Approvals(tmp_path)
    studies = [str(k).encode() for k in range(5)]
    for study in studies:
        approvals.approve(study, **GIVEN | {"name": "n" * 600})
    assert [approval.sha for approval in approvals.approved()] == [sha_of(study) for study in studies]
    assert len(approvals.approved()[0].name) == 500


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": {}}', f'{{"{OTHER}": {{"name": 1}}}}', f'{{"{OTHER}": true}}'])
def test_damaged_approvals_approve_nothing(text, tmp_path):
    (tmp_path / "approvals.json").write_text(text)
    with pytest.raises(ParameterError, match=r"approvals\.json: is damaged, or of an earlier silograph"):
        Approvals(tmp_path).get(OTHER)
    with pytest.raises(ParameterError, match="damaged"):
        Approvals(tmp_path).approve(STUDY.encode(), **GIVEN)
    assert (tmp_path / "approvals.json").read_text() == text, "nobody's approvals are written over"


@pytest.mark.parametrize("sha", ["", "../../etc/passwd", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "ab" * 31 + "/x"])
def test_only_a_sha_256_becomes_a_files_name(sha, tmp_path):
    approvals = Approvals(tmp_path)
    for ask in (
        lambda: approvals.get(sha),
        lambda: approvals.approve(STUDY.encode(), **GIVEN | {"table": sha}),
        lambda: approvals.revoke(sha),
        lambda: approvals.reject(sha),
        lambda: approvals.note_pending(sha, "", asked_by="c"),
        lambda: approvals.count_round(sha),
        lambda: approvals.rounds_used(sha),
    ):
        with pytest.raises(ParameterError, match="expected a SHA-256"):
            ask()
    assert [path.name for path in tmp_path.rglob("*")] in ([], ["approvals.lock"])


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere.*cannot be written"):
        Approvals(tmp_path / "nowhere").approve(STUDY.encode(), **GIVEN)
    assert Approvals(tmp_path / "nowhere").get(SHA) is None


# --- studies that wait ------------------------------------------------------------------------------------------------


def test_a_study_that_was_asked_for_waits_byte_for_byte_until_it_is_approved(tmp_path):
    approvals = Approvals(tmp_path)
    assert approvals.note_pending(SHA, STUDY, asked_by="coordinator")
    (waiting,) = approvals.pending()
    assert (waiting.sha, waiting.asked_by) == (SHA, "coordinator")
    assert waiting.path.read_bytes() == STUDY.encode()
    assert approvals.get(SHA) is None
    approvals.approve(STUDY.encode(), **GIVEN)
    assert approvals.pending() == []
    assert list((tmp_path / "pending").iterdir()) == []
    assert approvals.find(SHA).read_bytes() == STUDY.encode(), "its text is kept to compare others with"


def test_asking_again_changes_nothing(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="first")
    before = approvals.pending()
    approvals.note_pending(SHA, STUDY, asked_by="second")
    assert approvals.pending() == before


def test_fifty_that_wait_cannot_be_pushed_out_by_fifty_others(tmp_path):
    approvals = Approvals(tmp_path)
    texts = [f"n = {k}" for k in range(100)]
    kept = [approvals.note_pending(sha_of(text.encode()), text, asked_by="c") for text in texts]
    assert kept == [True] * 50 + [False] * 50
    assert [study.path.read_text() for study in approvals.pending()] == texts[:50]
    assert len(list((tmp_path / "pending").iterdir())) == 100
    approvals.reject(sha_of(texts[7].encode()))
    assert approvals.note_pending(sha_of(texts[60].encode()), texts[60], asked_by="c")
    assert [study.path.read_text() for study in approvals.pending()] == [*texts[:7], *texts[8:50], texts[60]]


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


@pytest.mark.parametrize(
    "character",
    ["\x1b[2J", "\x00", "\x9b", "\u202e", "\u2066", "\u2028", "\u2029", "\u200b", "\ufeff", "\x08", "a\rb", "\x7f"],
)
def test_a_study_that_a_terminal_would_show_otherwise_is_not_kept(character, tmp_path):
    text = f"a = 1\nb = '{character}'\n"
    with pytest.raises(ProtocolError, match="line 2: expected text that can be read"):
        Approvals(tmp_path).note_pending(sha_of(text.encode()), text, asked_by="c")
    assert Approvals(tmp_path).pending() == []
    with pytest.raises(ProtocolError, match="line 2: expected text that can be read"):  # nor approved from a file
        Approvals(tmp_path).approve(text.encode(), **GIVEN)
    assert Approvals(tmp_path).approved() == []


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
    (tmp_path / "rounds" / SHA).write_text(text)
    for ask in (Approvals(tmp_path).rounds_used, Approvals(tmp_path).count_round):
        with pytest.raises(ParameterError, match=r"expected a number of rounds, got .* approve the study afresh"):
            ask(SHA)
    Approvals(tmp_path).approve(STUDY.encode(), **GIVEN, fresh=True)
    assert Approvals(tmp_path).count_round(SHA) == 1


# --- whole hashes -----------------------------------------------------------------------------------------------------


def test_a_study_is_found_by_its_whole_sha_and_by_no_part_of_it(tmp_path):
    """Another study whose hash begins with the same twelve digits takes seconds to find."""
    approvals = Approvals(tmp_path)
    approvals.note_pending(SHA, STUDY, asked_by="c")
    approvals.approve(b"other = 1", **GIVEN)
    for sha, text in ((SHA, STUDY.encode()), (sha_of(b"other = 1"), b"other = 1")):
        assert {approvals.find(form).read_bytes() for form in (sha, sha.upper(), f" {sha}\n")} == {text}
    for part in ("", SHA[:8], SHA[:12], SHA[:63], SHA + "0", "xyz", "../" + SHA):
        with pytest.raises(ParameterError, match="expected a file, or a whole SHA-256, 64 digits"):
            approvals.find(part)
    with pytest.raises(ParameterError, match=f"{OTHER}: neither waits nor was approved"):
        approvals.find(OTHER)


def test_what_was_written_is_readable_json(tmp_path):
    Approvals(tmp_path).approve(STUDY.encode(), **GIVEN)
    about = json.loads((tmp_path / "approvals.json").read_text())[SHA]
    assert set(about) == {"name", "when", "by", "table", "despite"}
