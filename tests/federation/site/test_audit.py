"""The audit log: appended to by several processes at once, torn by crashes, and altered by nobody unseen."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import OutputError, ParameterError, SilographError
from silograph.federation.site.audit import LONG_TAIL, LONGEST_LINE, AuditLog, Verdict, entries, verify
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.settings_log import note_settings
from silograph.federation.witness import Witness

WRITER = """
import sys
from pathlib import Path
from silograph.federation.site.audit import AuditLog
log = AuditLog(Path(sys.argv[1]))
for k in range(int(sys.argv[3])):
    log.append({"writer": sys.argv[2], "k": k, "text": "x" * 300})
    print(k, flush=True)
"""


def log_of(folder: Path, n_entries: int = 12) -> Path:
    path = folder / "audit.jsonl"
    for k in range(n_entries):
        AuditLog(path).append({"event": "round", "k": k, "study": "ä\n\"'\\"})
    return path


def head_of(path: Path) -> Path:
    return path.with_suffix(".head")


def sound(n_entries: int, torn: int = 0) -> Verdict:
    return Verdict(entries=n_entries, torn=torn, problem=None)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def writing(path: Path, name: str, n_entries: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), name, str(n_entries)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def forged(rest: dict) -> bytes:
    """A line as the module's first words describe it, by other means."""
    body = json.dumps(rest, separators=(",", ":"))
    return (body[:-1] + f',"hash":"{sha256(body.encode()).hexdigest()}"}}\n').encode()


# --- what is written --------------------------------------------------------------------------------------------------


def test_an_entry_is_one_line_with_its_number_time_fields_and_place_in_the_chain(tmp_path):
    path = log_of(tmp_path, 3)
    first, second, third = map(json.loads, lines_of(path))
    assert list(first) == ["sequence", "time", "event", "k", "study", "previous", "hash"]
    assert [entry["sequence"] for entry in (first, second, third)] == [1, 2, 3]
    assert (first["previous"], second["previous"], third["previous"]) == ("0" * 64, first["hash"], second["hash"])
    assert first["time"] < second["time"] < third["time"]
    assert first["time"].endswith("+00:00")
    assert lines_of(path)[1] == forged({key: value for key, value in second.items() if key != "hash"})
    assert json.loads(head_of(path).read_text()) == {"entries": 3, "hash": third["hash"]}


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=50).filter(lambda name: name not in ("sequence", "time", "previous", "hash")),
        st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats() | st.text(max_size=600),
        max_size=10,
    )
)
def test_any_fields_come_back_but_long_texts_are_cut_and_infinities_told_as_text(tmp_path_factory, fields):
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    AuditLog(path).append(fields)
    AuditLog(path).append(fields)
    assert path.read_bytes().count(b"\n") == 2
    assert verify(path) == sound(2)
    for entry in entries(path):
        for name, value in fields.items():
            finite = not isinstance(value, float) or value - value == 0
            assert entry[name] == ((value[:500] if isinstance(value, str) else value) if finite else str(value))


@pytest.mark.parametrize("entry", [{"hash": "x"}, {"": 1}, {"n" * 51: 1}, {"a": [1]}, {"a": 2**63}, {"a": b"x"}])
def test_fields_that_do_not_fit_are_refused_and_nothing_is_written(entry, tmp_path):
    with pytest.raises(ParameterError, match="field"):
        AuditLog(tmp_path / "audit.jsonl").append(entry)
    with pytest.raises(ParameterError, match="at most 40 fields, got 41"):
        AuditLog(tmp_path / "audit.jsonl").append({f"field {k}": k for k in range(41)})
    assert list(tmp_path.iterdir()) == []


def test_the_longest_entry_fits_where_the_last_one_is_looked_for(tmp_path):
    path = log_of(tmp_path, 1)
    for _ in range(3):
        AuditLog(path).append({f"{k:02}" + "😀" * 48: "😀" * 500 for k in range(40)})
    assert max(map(len, lines_of(path))) < LONGEST_LINE
    head_of(path).unlink()  # so that only the log itself can say how far it is
    AuditLog(path).append({"k": 1})
    assert verify(path) == sound(5)


def test_a_log_that_cannot_be_written_is_told_with_its_place_and_cause(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere.*No such file.*answers nothing that it cannot write down"):
        AuditLog(tmp_path / "nowhere" / "audit.jsonl").append({"k": 1})


def test_durable_entries_wait_for_the_disk_and_others_do_not(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)
    path = log_of(tmp_path, 2)
    assert waited == []
    AuditLog(path).append({"k": 1}, durable=True)
    assert len(waited) == 1, "the log; a head that is behind does no harm"


def test_a_system_without_file_locks_is_told_what_to_use(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(SilographError, match="needs Linux or macOS"):
        log_of(tmp_path, 1)


# --- several processes, and their ends --------------------------------------------------------------------------------


def test_four_processes_may_append_at_once(tmp_path):
    path = tmp_path / "audit.jsonl"
    writers = [writing(path, str(k), 200) for k in range(4)]
    verdicts = []
    while any(writer.poll() is None for writer in writers):  # and be checked meanwhile
        verdicts.append(verify(path))
        time.sleep(0.02)
    assert [writer.communicate()[1] or writer.returncode for writer in writers] == [0] * 4
    assert verify(path) == sound(800)
    assert {(verdict.torn, verdict.problem) for verdict in verdicts} == {(0, None)}
    said = [(entry["writer"], entry["k"]) for entry in entries(path)]
    for k in range(4):
        assert [number for writer, number in said if writer == str(k)] == list(range(200))


def test_killed_writers_lose_nothing_that_they_had_written(tmp_path):
    path, said = tmp_path / "audit.jsonl", set()
    for k in range(10):
        writer = writing(path, str(k), 100_000)
        heard = [writer.stdout.readline() for _ in range(20 + 7 * k)]
        writer.send_signal(signal.SIGKILL)
        heard += writer.communicate()[0].splitlines(keepends=True)
        said |= {(str(k), int(line)) for line in heard if line.endswith("\n")}
        assert verify(path).problem is None
    assert said <= {(entry["writer"], entry["k"]) for entry in entries(path)}
    AuditLog(path).append({"writer": "last", "k": 0})
    assert verify(path).problem is None


def test_a_line_torn_anywhere_stays_and_the_chain_goes_on_after_it(tmp_path):
    path = log_of(tmp_path, 2)
    before, head = path.read_bytes(), head_of(path).read_bytes()
    AuditLog(path).append({"event": "torn"})
    line = lines_of(path)[2]
    for length in range(1, len(line)):
        path.write_bytes(before + line[:length])
        head_of(path).write_bytes(head)
        is_whole = length == len(line) - 1  # only its line end is missing
        assert verify(path) == (sound(3) if is_whole else sound(2, torn=1)), length
        AuditLog(path).append({"k": "next"})
        AuditLog(path).append({"k": "after"})
        assert verify(path) == (sound(5) if is_whole else sound(4, torn=1)), length
        assert path.read_bytes().startswith(before + line[:length] + b"\n"), "nothing was taken away"
        assert [entry["k"] for entry in entries(path, last=2)] == ["next", "after"]


def test_even_the_very_first_line_may_be_torn(tmp_path):
    path = log_of(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:50])
    head_of(path).unlink()
    assert verify(path) == sound(0, torn=1)
    AuditLog(path).append({"k": 1})
    assert verify(path) == sound(1, torn=1)


def test_a_full_disk_in_the_middle_of_a_line_is_told_and_loses_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    path = log_of(tmp_path, 3)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 40, limit[1]))
        for _ in range(3):
            with pytest.raises(OutputError, match="cannot be written"):
                AuditLog(path).append({"k": 3})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert verify(path) == sound(3, torn=1)
    AuditLog(path).append({"k": "room again"})
    assert verify(path) == sound(4, torn=1)


def test_a_head_that_lags_behind_after_a_crash_is_tolerated_and_mended(tmp_path):
    path = log_of(tmp_path, 2)
    old = head_of(path).read_bytes()
    AuditLog(path).append({"k": 2})
    head_of(path).write_bytes(old)
    assert verify(path) == sound(3)
    AuditLog(path).append({"k": 3})
    assert json.loads(head_of(path).read_text())["entries"] == 4
    assert verify(path) == sound(4)


# --- nobody alters it unseen ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twelve(tmp_path_factory) -> tuple[Path, bytes]:
    path = log_of(tmp_path_factory.mktemp("twelve"))
    return path, path.read_bytes()


@given(data=st.data())
@settings(max_examples=400)
def test_every_altered_byte_is_found_wherever_it_is(data, twelve):
    path, whole = twelve
    altered, place = bytearray(whole), data.draw(st.integers(0, len(whole) - 1))
    altered[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(altered)
    problem, line = verify(path).problem, whole.count(b"\n", 0, place) + 1
    if line < 11 or problem is None or problem.startswith("line"):
        assert problem is not None
        assert problem.startswith(f"line {line}:")
    else:  # looks torn, and no entry comes after it: the head tells. Line 11's end counts, as it joins the last two
        assert problem.startswith("entries are missing at the end")


@given(data=st.data())
def test_every_altered_byte_of_the_head_is_found_too(data, twelve):
    path, whole = twelve
    path.write_bytes(whole)
    head = head_of(path).read_bytes()
    altered, place = bytearray(head), data.draw(st.integers(0, len(head) - 1))
    altered[place] ^= data.draw(st.integers(1, 255))
    head_of(path).write_bytes(altered)
    verdict = verify(path)
    head_of(path).write_bytes(head)
    same = json_or_none(altered) == json.loads(head)  # one kind of white space for another
    assert (verdict.problem is None) == same


def json_or_none(data: bytes) -> object:
    try:
        return json.loads(data.decode())
    except ValueError:
        return None


def test_only_bytes_of_an_incomplete_line_may_change_unseen_as_no_hash_covers_them(tmp_path):
    path = log_of(tmp_path, 3)
    with path.open("ab") as file:
        file.write(b'{"sequence":4,"time":"20')
    AuditLog(path).append({"k": 4})
    path.write_bytes(path.read_bytes().replace(b'"time":"20\n', b'"time":"21\n'))
    assert verify(path) == sound(4, torn=1)


@pytest.mark.parametrize("k", [0, 1, 5, 10])
def test_a_removed_entry_is_found_where_it_is_missing(k, tmp_path):
    path = log_of(tmp_path)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:k] + lines[k + 1 :]))
    assert verify(path).problem.startswith(f"line {k + 1}: expected entry {k + 1}, found {k + 2}: entries were removed")
    assert verify(path).entries == k


@pytest.mark.parametrize(("one", "other"), [(0, 1), (3, 7), (10, 11), (0, 11)])
def test_entries_in_another_order_are_found(one, other, tmp_path):
    path = log_of(tmp_path)
    lines = lines_of(path)
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))
    assert verify(path).problem.startswith(f"line {one + 1}:")


@pytest.mark.parametrize("n_cut", [1, 2, 11, 12])
def test_entries_cut_off_at_the_end_are_found_and_stay_so_when_the_log_goes_on(n_cut, tmp_path):
    path = log_of(tmp_path)
    path.write_bytes(b"".join(lines_of(path)[:-n_cut]))
    kept = 12 - n_cut
    assert verify(path).problem == (f"entries are missing at the end: audit.head counts 12, the log holds {kept}.")
    AuditLog(path).append({"k": 12})
    assert verify(path).problem.startswith(
        f"line {kept + 1}: expected entry {kept + 1}, found 13: entries were removed"
    )


def test_an_end_cut_off_within_a_line_is_found_unless_only_the_line_end_went(tmp_path):
    path = log_of(tmp_path, 4)
    whole, line = path.read_bytes(), lines_of(path)[-1]
    for n_cut in range(1, len(line) + 5):
        path.write_bytes(whole[:-n_cut])
        assert (verify(path).problem is None) == (n_cut == 1), n_cut


def test_a_log_that_is_gone_is_found_and_one_that_never_was_is_sound(tmp_path):
    assert verify(tmp_path / "audit.jsonl") == sound(0)
    path = log_of(tmp_path, 3)
    path.unlink()
    assert verify(path).problem == "entries are missing at the end: audit.head counts 3, the log holds 0."


@pytest.mark.parametrize("head", [None, b"", b"{}", b"[1]", b'{"entries": "3", "hash": "x"}', b"\xff"])
def test_without_a_head_the_log_goes_on_but_does_not_pass_for_whole(head, tmp_path):
    path = log_of(tmp_path, 3)
    head_of(path).unlink() if head is None else head_of(path).write_bytes(head)
    assert verify(path).problem.startswith("audit.head is missing or damaged")
    AuditLog(path).append({"k": 3})
    assert verify(path) == sound(4)


def test_an_entry_put_in_is_found_even_with_a_right_hash(tmp_path):
    path = log_of(tmp_path, 6)
    lines = lines_of(path)
    before = json.loads(lines[2])
    extra = forged({"sequence": 4, "time": before["time"], "k": "forged", "previous": before["hash"]})
    path.write_bytes(b"".join([*lines[:3], extra, *lines[3:]]))
    assert verify(path).problem == (
        "line 5: expected entry 5, found 4: an entry was inserted here or just before, or moved."
    )
    path.write_bytes(b"".join([*lines[:3], extra, *lines[4:]]))
    assert verify(path).problem == "line 5: does not follow from the entry before: one of the two was replaced."
    path.write_bytes(b"".join([*lines[:4], lines[1], *lines[4:]]))
    assert verify(path).problem.startswith("line 5: expected entry 5, found 2: an entry was inserted")


def test_another_last_entry_is_told_by_the_head(tmp_path):
    path = log_of(tmp_path, 3)
    lines = lines_of(path)
    last = {key: value for key, value in json.loads(lines[2]).items() if key != "hash"}
    path.write_bytes(b"".join([*lines[:2], forged(last | {"k": "forged"})]))
    assert verify(path).problem.startswith("line 3: entry 3 is not the one that audit.head was written for")


@pytest.mark.parametrize("line", [b"{}\n", b"5\n", b'{"sequence":4}\n', b"null\n"])
def test_a_line_of_json_that_is_no_entry_is_not_taken_for_one_torn_by_a_crash(line, tmp_path):
    path = log_of(tmp_path, 3)
    with path.open("ab") as file:
        file.write(line)
    AuditLog(path).append({"k": 4})
    assert verify(path).problem == "line 4: altered, or not written by silograph."


@pytest.mark.parametrize("garbage", [b"\0" * 5000, b"[" * 200_000, b"\xff\xfe\n\n", b"x" * (LONG_TAIL + 10)])
def test_garbage_at_the_end_neither_stops_the_log_nor_its_check(garbage, tmp_path):
    path = log_of(tmp_path, 3)
    with path.open("ab") as file:
        file.write(garbage)
    AuditLog(path).append({"k": 4})
    verdict = verify(path)
    assert (verdict.entries, verdict.problem) == (4, None)
    assert [entry["sequence"] for entry in entries(path)] == [1, 2, 3, 4]
    assert [entry["sequence"] for entry in entries(path, last=2)] == [3, 4]


def test_a_large_file_that_is_no_audit_log_is_left_alone(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"x" * (LONG_TAIL + 1))
    with pytest.raises(OutputError, match="keep it as evidence"):
        AuditLog(path).append({"k": 1})
    assert path.stat().st_size == LONG_TAIL + 1


# --- for display ------------------------------------------------------------------------------------------------------


def test_the_last_entries_are_shown_oldest_first_however_many_there_are(tmp_path):
    assert list(entries(tmp_path / "audit.jsonl", last=3)) == []
    path = log_of(tmp_path, 100)
    for last in (0, 1, 2, 50, 99, 100, 1000):
        shown = [entry["sequence"] for entry in entries(path, last=last)]
        assert shown == list(range(1, 101))[100 - min(last, 100) :]
    assert len(list(entries(path))) == 100


# --- single entries ---------------------------------------------------------------------------------------------------


def test_any_entry_of_a_long_log_with_torn_lines_is_found_by_its_number(tmp_path):
    path = tmp_path / "audit.jsonl"
    log, places = AuditLog(path), []
    for number in range(300):
        places.append(log.append({"what": "asked", "detail": "x" * (number * 37 % 450)}))
        if number % 50 == 7:
            with path.open("ab") as file:
                file.write(b'{"sequence": torn' + b"y" * (number * 40))
    assert path.stat().st_size > 60_000
    assert all(log.has(place) for place in places)
    assert [place.entries for place in places] == list(range(1, 301))
    assert not any(log.has(Witness(place.entries, "0" * 64)) for place in places[::20])
    assert not any(log.has(Witness(number, places[-1].hash)) for number in (299, 301, 10**12))


def test_a_log_that_is_not_there_has_no_entry(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    assert not log.has(Witness(1, "0" * 64))
    assert log.last_of("settings") is None


# --- the settings -----------------------------------------------------------------------------------------------------

OSLO = SiteSettings(name="oslo", federation="f", server="s", data=Path("/secret/place.csv"))


def test_changes_of_the_settings_are_logged_by_key_and_never_with_a_path(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")

    def told() -> list[str]:
        return [entry["detail"] for entry in entries(tmp_path / "audit.jsonl")]

    note_settings(log, OSLO)
    note_settings(log, OSLO)
    assert len(told()) == 1
    assert told()[0].startswith("site.toml has: name, federation, server, data, drop")
    note_settings(log, replace(OSLO, min_samples=1, approve_all=True, data=Path("/secret/other.csv")))
    assert told()[1:] == ["site.toml changed: data, min_samples = 1, approve_all = true"]
    note_settings(log, OSLO)
    assert told()[2:] == ["site.toml changed: data, min_samples = null, approve_all = false"]
    assert b"secret" not in (tmp_path / "audit.jsonl").read_bytes()
    assert verify(tmp_path / "audit.jsonl").problem is None
