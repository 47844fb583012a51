import json
import math
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import CheckpointError, OutputError, ParameterError
from silograph.federation.coordinator.history import History

WRITER = """
import sys
from pathlib import Path
from silograph.federation.coordinator.history import History
history = History(Path(sys.argv[1]))
for number in range(1, 10**6):
    history.add_round("learn", {"round": number, "gap": 1 / number}, seconds=0.1, bytes_down=1, bytes_up=2)
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history #1?.db"  # characters that an address would take amiss


def add(history: History, number: int, stage: str = "learn", **record: object) -> None:
    history.add_round(stage, {"round": number, **record}, seconds=1.5, bytes_down=10, bytes_up=20)


def test_a_round_is_read_as_it_was_written(path):
    before = time.time()
    with History(path) as history:
        add(history, 1, silos=np.int64(3), gap=np.float64(0.5), objective=2, step="solve")
        (found,) = history.rounds()
    assert (found.stage, found.round, found.seconds, found.bytes_down, found.bytes_up) == ("learn", 1, 1.5, 10, 20)
    assert (found.gap, found.objective, found.silos) == (0.5, 2, 3)
    assert found.record == {"round": 1, "silos": 3, "gap": 0.5, "objective": 2, "step": "solve"}
    assert before <= found.finished_at <= time.time()


def test_a_round_written_twice_is_there_once_and_in_its_place(path):
    with History(path) as history:
        for number in (1, 2, 2):
            add(history, number, gap=1 / number)
        add(history, 1, stage="graphs")
        add(history, 2, gap=0.25)
        assert [(found.stage, found.round) for found in history.rounds()] == [("learn", 1), ("learn", 2), ("graphs", 1)]
        assert history.rounds()[1].gap == 0.25
        assert history.last_round() == history.rounds()[-1]


@given(gap=st.floats(), objective=st.none() | st.floats())
def test_any_number_survives_and_is_null_to_sql_where_it_is_not_finite(tmp_path_factory, gap, objective):
    path = tmp_path_factory.mktemp("history") / "history.db"
    with History(path) as history:
        add(history, 1, gap=gap, objective=objective)
        found = history.last_round()
    assert found is not None
    np.testing.assert_equal((found.gap, found.objective), (gap, objective))
    np.testing.assert_equal(found.record["gap"], gap)
    with closing(sqlite3.connect(path)) as plain:
        (column,) = plain.execute("SELECT gap FROM rounds").fetchone()
    assert column == (gap if math.isfinite(gap) else None)


def test_a_site_keeps_its_version_and_when_it_was_seen_until_told_otherwise(path):
    with History(path) as history:
        history.see_site("lima", state="expected", seen=False)
        assert history.sites()[0].last_seen is None
        history.see_site("lima", state="ready", version="0.2", note="slow")
        seen = history.sites()[0]
        assert seen.last_seen is not None
        history.see_site("lima", state="lost", seen=False)
        history.see_site("alba", state="ready")
        alba, lima = history.sites()
    assert (lima.state, lima.version, lima.note, lima.last_seen) == ("lost", "0.2", None, seen.last_seen)
    assert alba.name == "alba"


def test_events_are_appended_and_read_from_where_one_left_off(path):
    with History(path) as history:
        first = history.add_event("started", stage="learn")
        second = history.add_event("rejected", site="oslo", stage="learn", round=3, reason="NaN in w", file="oslo.msg")
        assert [event.id for event in history.events()] == [first, second]
        (event,) = history.events(after=first)
        assert (event.site, event.round, event.kind, event.reason, event.file) == (
            "oslo", 3, "rejected", "NaN in w", "oslo.msg",
        )  # fmt: skip
        assert history.events(after=second) == []
        with pytest.raises(ParameterError, match="kind: expected one of rejected"):
            history.add_event("exploded")  # type: ignore[arg-type]


@given(st.text(st.characters(), max_size=20) | st.just("x" * 10**6))
def test_whatever_a_site_says_can_be_written_down(tmp_path_factory, said):
    with History(tmp_path_factory.mktemp("history") / "history.db") as history:
        history.add_event("refused", site="oslo", reason=said)
        history.see_site("oslo", state="refused", version=said, note=said)
        assert history.events()[0].reason == said.encode("utf-8", "replace").decode()[:2000]


def test_before_there_is_a_file_a_reader_sees_nothing_and_makes_none(path):
    with History.open_read(path) as reader:
        assert (reader.rounds(), reader.last_round(), reader.sites(), reader.events()) == ([], None, [], [])
        assert not path.exists()
        path.touch()  # as the writer does before it makes the tables
        assert reader.rounds() == []
        path.unlink()
        with History(path) as history:
            add(history, 1)
            assert len(reader.rounds()) == 1


def test_a_reader_writes_nothing(path):
    with History(path) as history:
        add(history, 1)
    reader = History.open_read(path)
    with pytest.raises(OutputError, match="expected a history to write to, got one opened to read"):
        add(reader, 2)
    with pytest.raises(OutputError, match="or closed"):
        add(history, 2)
    history.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]  # no log is left


def test_a_file_that_is_no_history_is_left_alone(path):
    path.write_text("Not a database, but longer than the hundred bytes of a header. " * 40)
    kept = path.read_bytes()
    with pytest.raises(OutputError, match="the history cannot be written"):
        History(path)
    with pytest.raises(CheckpointError, match="the history cannot be read"):
        History.open_read(path).rounds()
    assert path.read_bytes() == kept
    with pytest.raises(OutputError, match="Choose another place"):
        History(path.parent / "nowhere" / "history.db")


def test_a_history_of_another_version_is_refused(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
    with pytest.raises(CheckpointError, match="another version"):
        History(path)
    with pytest.raises(CheckpointError, match="another version"):
        History.open_read(path).rounds()


def test_several_threads_write_at_once(path):
    with History(path) as history:

        def write(stage: str) -> None:
            for number in range(1, 51):
                add(history, number, stage=stage)
                history.add_event("missing", site=stage, round=number)

        threads = [threading.Thread(target=write, args=(f"stage {k}",)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(history.rounds()) == len(history.events()) == 200


def test_a_writer_killed_while_it_writes_leaves_every_finished_round(path):
    reader = History.open_read(path)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        seen = 0
        for line in writer.stdout:  # a reader meanwhile sees whole rounds, and ever more of them
            if int(line) % 50 == 0:
                numbers = [found.round for found in reader.rounds()]
                assert numbers == list(range(1, len(numbers) + 1))
                assert len(numbers) >= max(int(line), seen)
                seen = len(numbers)
            if int(line) == 300:
                writer.kill()
                break
        said = [int(line) for line in writer.stdout if line.endswith("\n")]
    last = max([300, *said])
    found = reader.rounds()
    assert [one.round for one in found] == list(range(1, len(found) + 1))
    assert len(found) in (last, last + 1)  # it may have died between the file and the word
    with History(path) as resumed:
        add(resumed, last, gap=0.0)
        assert len(resumed.rounds()) == len(found)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert json.loads(plain.execute("SELECT record FROM rounds").fetchone()[0]) == {"round": 1, "gap": 1.0}


def test_a_round_costs_less_than_a_millisecond(path):
    times = []
    with History(path) as history:
        for number in range(500):
            begin = time.perf_counter()
            add(history, number, gap=0.5, objective=1.0, silos=20, step="solve")
            times.append(time.perf_counter() - begin)
    assert np.median(times) < 1e-3  # the mean is too, but for another process's sake on this machine
