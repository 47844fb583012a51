"""A run over several silos is killed, at any moment and as often as one likes, and resumed: its result is the same."""

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from silograph import learn_files
from silograph.runs.request import make_request
from silograph.runs.writer import begin_run
from testing.silo_problems import silo_signals
from testing.waiting import eventually

REQUEST = Path("checkpoint", "request.json")  # is there once a run has begun
OPTIONS = ["--degree", "4", "--coupling", "0.9", "--tol", "1e-9", "--quiet"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tables")
    signals = silo_signals(np.random.default_rng(3), "different", 6, 60)
    for number, values in enumerate(signals):
        np.savetxt(folder / f"site{number}.csv", values, delimiter=",")
    return sorted(folder.glob("*.csv"))


def silograph(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "silograph", "learn", *arguments]


def digest(run: Path) -> str:
    """The checksum of everything that was learned; run.json also tells the time of day."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != "run.json")
    assert len(files) == 3 * 7 + 5
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@pytest.fixture(scope="module")
def undisturbed(tables, tmp_path_factory) -> tuple[str, float, float]:
    """What is learned, the seconds from start to end, and those of them after the run has begun."""
    folder = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(silograph(*map(str, tables), *OPTIONS, "--out", str(folder / "first")), check=True)  # may compile
    run = folder / "run"
    started = time.perf_counter()
    process = subprocess.Popen(silograph(*map(str, tables), *OPTIONS, "--out", str(run)))
    eventually((run / REQUEST).exists, every=0.005)
    begun = time.perf_counter()
    assert process.wait() == 0
    return digest(run), time.perf_counter() - started, time.perf_counter() - begun


def killed(command: list[str], after: float | None, begun: Path | None = None) -> bool:
    """Whether the process was still running when it was killed, so long after this file is there; or it ended well."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    eventually(lambda: begun is None or begun.exists() or process.poll() is not None, every=0.005)
    try:
        _, complaint = process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0, complaint
    return False


def check_kills(
    tables: list[Path], undisturbed: tuple[str, float, float], folder: Path, *, n_kills: int, seed: int, anywhere: bool
) -> None:
    """Kill runs at random moments; `anywhere` also before a run has begun, which takes more runs."""
    expected, seconds, learning = undisturbed
    rng = np.random.default_rng(seed)
    kills = resumed = attempt = 0
    while kills < n_kills or resumed < 2:
        attempt += 1
        run = folder / f"run{attempt}"
        request = run / REQUEST
        command = silograph(*map(str, tables), *OPTIONS, "--out", str(run))
        after, begun = (seconds, None) if anywhere else (learning, request)
        while killed(command, rng.uniform(0, after) if kills < n_kills or resumed < 2 else None, begun):
            kills += 1
            resumed += request.is_file()
            if request.is_file() or (run / "run.json").is_file():  # else it was killed before it began
                command, after, begun = silograph("--resume", str(run), "--quiet"), seconds, None
        assert digest(run) == expected
        assert not [path for path in run.iterdir() if path.name.startswith((".", "checkpoint"))]
        assert attempt < 5 * n_kills, "runs end before they are killed"


def test_a_killed_run_resumes_to_the_identical_result(tables, undisturbed, tmp_path):
    check_kills(tables, undisturbed, tmp_path, n_kills=3, seed=1, anywhere=False)


@pytest.mark.slow
def test_fifty_kills_change_nothing(tables, undisturbed, tmp_path):
    check_kills(tables, undisturbed, tmp_path, n_kills=50, seed=2, anywhere=True)


def test_a_run_killed_on_the_command_line_is_resumed_from_python(tables, undisturbed, tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen(silograph(*map(str, tables), *OPTIONS, "--out", str(run)))
    while not list(run.glob("checkpoint/learn/0*.json")):  # until it has written a round
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "run.json").exists()
    told: list[str] = []
    resumed = learn_files(resume=run, on_progress=lambda what, part: told.append(what))
    assert digest(run) == undisturbed[0]
    assert resumed.record.resumed
    assert resumed.converged
    assert "Reading site0.csv" in told
    assert f"Round {resumed.result.rounds} of 6 silos" in told[-2]
    assert told[-1] == "Looking at signs"


def test_one_table_killed_as_it_was_written_is_resumed_too(tables, tmp_path):
    expected = learn_files(tables[0], degree=4, out=tmp_path / "whole")
    begin(tmp_path / "run", tables[:1], degree=4)
    (tmp_path / "run" / "graph.npz").write_bytes(b"moved in before the record")
    resumed = learn_files(resume=tmp_path / "run")
    assert resumed.main == expected.main
    for name in ("graph.npz", "graph.graphml", "edges.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "edges.csv", "graph.graphml", "graph.npz", "partial.npz", "run.json", "scores.npz",
    ]  # fmt: skip


def begin(run, tables, **settings) -> None:
    """A run as it is when it is killed in its first round."""
    paths = [Path(table) for table in tables]
    checksums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    begin_run(run, make_request(paths, settings).as_data(checksums))


def test_a_finished_run_has_nothing_to_resume(tables, tmp_path):
    run = tmp_path / "run"
    subprocess.run(silograph(*map(str, tables[:2]), "--degree", "4", "--out", str(run), "--quiet"), check=True)
    before = (run / "run.json").read_bytes()
    again = subprocess.run(silograph("--resume", str(run)), capture_output=True, text=True, check=True)
    assert "this run is finished" in again.stderr
    assert (run / "run.json").read_bytes() == before


def test_changed_data_are_refused_and_named(tables, tmp_path):
    copies = []
    for table in tables[:3]:
        copy = tmp_path / table.name
        copy.write_bytes(table.read_bytes())
        copies.append(str(copy))
    run = tmp_path / "run"
    begin(run, copies, degree=4.0)
    values = np.loadtxt(copies[1], delimiter=",")
    values[0, 0] += 1
    np.savetxt(copies[1], values, delimiter=",")
    again = subprocess.run(silograph("--resume", str(run)), capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "site1.csv: has changed" in again.stderr.replace("\n", "")
