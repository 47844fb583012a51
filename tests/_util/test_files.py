"""Files appear whole or not at all, and durable ones outlast a power cut."""

import os
import stat
import threading

import pytest

from silograph._util.files import write_bytes, write_json, write_text, writing, writing_folder
from silograph.errors import OutputError


@pytest.mark.parametrize("under_lock", [False, True])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, under_lock):
    path = tmp_path / "state.json"
    write_bytes(path, b"old")
    with pytest.raises(TypeError):
        write_bytes(path, b"half", None, under_lock=under_lock)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_under_a_lock_crashes_leave_one_side_file_at_most(tmp_path, monkeypatch):
    def crash(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", crash)
    monkeypatch.setattr("pathlib.Path.unlink", crash)  # as when the process is gone
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            write_bytes(tmp_path / "audit.head", b"new", under_lock=True)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.head.new"]


@pytest.mark.parametrize(("durable", "waits"), [(False, []), (True, ["file", "folder"])])
def test_a_durable_file_waits_for_its_content_and_then_for_its_name(tmp_path, monkeypatch, durable, waits):
    seen = []

    def fsync(handle):
        seen.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        assert (tmp_path / "manifest").exists() == (seen[-1] == "folder")

    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(tmp_path / "manifest", b"a", memoryview(b"b"), durable=durable)
    assert seen == waits
    assert (tmp_path / "manifest").read_bytes() == b"ab"


def test_what_is_private_is_so_from_the_first_byte_and_other_files_are_as_the_system_makes_them(tmp_path):
    write_bytes(tmp_path / "key", b"secret")
    write_text(tmp_path / "note", "open")
    (tmp_path / "plain").touch()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["key"] == 0o600
    assert modes["note"] == modes["plain"]


def test_half_a_character_of_a_stranger_can_be_written_as_json(tmp_path):
    assert "\\ud800" in write_json(tmp_path / "status.json", {"version": "\ud800"}).read_text()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(OutputError, match=r"nowhere/x\.csv: cannot be written \(No such file"),
        writing(tmp_path / "nowhere" / "x.csv"),
    ):
        pass


@pytest.mark.skipif(not hasattr(os, "umask") or os.name == "nt", reason="no umask here")
def test_while_files_are_written_no_other_thread_makes_one_that_everybody_may_write(tmp_path):
    """The umask belongs to the whole process: to read it by setting it opens what others make meanwhile."""
    before, stop, modes = os.umask(0o077), threading.Event(), set()

    def make_files():
        while not stop.is_set():
            (tmp_path / "secret").touch()
            modes.add(stat.S_IMODE((tmp_path / "secret").stat().st_mode))
            (tmp_path / "secret").unlink()

    other = threading.Thread(target=make_files)
    other.start()
    try:
        for _ in range(2000):
            write_text(tmp_path / "note", "open")
        with writing_folder(tmp_path / "made", replace=False):
            pass
    finally:
        stop.set()
        other.join()
        os.umask(before)
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "note").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
