"""A run from Python: the same as from the command line, read back, and refused where it makes no sense."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import silograph
from silograph import ConsensusGraph, SmoothGraph, learn_files, read_run
from silograph.cli.app import app
from testing.silo_problems import silo_signals

NAMES = ("oslo", "lima", "kyoto")
FILES = [f"{name}.csv" for name in NAMES]


@pytest.fixture
def tables(tmp_path, monkeypatch, rng) -> dict[str, pd.DataFrame]:
    monkeypatch.chdir(tmp_path)
    columns = [f"region {k}" for k in range(10)]
    signals = silo_signals(rng, "different", 3, 10)
    out = {name: pd.DataFrame(x, columns=columns) for name, x in zip(NAMES, signals, strict=True)}
    for name, frame in out.items():
        frame.to_csv(f"{name}.csv", index=False)
    return out


def assert_same(run, other) -> None:
    assert run.main == other.main
    assert dict(run.graphs) == dict(other.graphs)
    assert run.record == other.record
    assert [list(row) for row in run.history] == [list(row) for row in other.history]


def test_several_paths_are_silos(tables):
    run = learn_files(FILES, degree=3, out="run")
    model = ConsensusGraph(degree=3).fit(tables)
    assert list(run.graphs) == list(NAMES)
    for name in NAMES:
        np.testing.assert_allclose(run.graphs[name].adjacency(), model.graphs_[name].adjacency(), atol=1e-9)
    np.testing.assert_allclose(run.consensus_graph.adjacency(), model.consensus_graph_.adjacency(), atol=1e-9)
    assert run.converged
    assert run.folder == Path("run")
    assert run.warnings == {}
    assert_same(run, read_run("run"))


def test_one_path_is_one_table(tables):
    run = learn_files("oslo.csv", degree=np.float32(3), neighbours=np.int64(4), standardize=np.True_, out=Path("run"))
    expected = SmoothGraph(degree=3, standardize=True).fit(tables["oslo"]).graph_
    np.testing.assert_allclose(run.consensus_graph.adjacency(), expected.adjacency(), atol=1e-9)
    assert_same(run, read_run("run"))


@pytest.mark.parametrize("options", [{}, {"standardize": True, "drop": "region 4"}])
def test_a_table_of_many_nodes_has_the_graph_of_stored_costs(tables, monkeypatch, options):
    stored = learn_files("oslo.csv", degree=3, out="stored", **options)
    monkeypatch.setattr("silograph.local.large.LARGE", 5)
    given = {"alpha": stored.record.result.alpha, "beta": stored.record.result.beta}
    run = learn_files("oslo.csv", out="run", **given, **options)
    np.testing.assert_allclose(run.consensus_graph.adjacency(), stored.consensus_graph.adjacency(), atol=1e-10)
    assert run.converged
    silo, other = run.record.silos[0], stored.record.silos[0]
    assert silo.mean_squared_difference == pytest.approx(other.mean_squared_difference, rel=1e-12)
    assert replace(silo, mean_squared_difference=None) == replace(other, mean_squared_difference=None)
    assert run.warnings == stored.warnings
    assert_same(run, read_run("run"))


@pytest.mark.parametrize("paths", [FILES, FILES[:1]])
def test_python_and_the_command_line_write_the_same(tables, paths):
    learn_files(paths, degree=3, drop="region 4", out="python")
    arguments = ["learn", *paths, "--degree", "3", "--drop", "region 4", "--out", "line", "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    files = sorted(path.relative_to("python") for path in Path("python").rglob("*") if path.is_file())
    assert files == sorted(path.relative_to("line") for path in Path("line").rglob("*") if path.is_file())
    for path in files:
        if path.name != "run.json":
            assert Path("python", path).read_bytes() == Path("line", path).read_bytes()
    one, other = (json.loads(Path(folder, "run.json").read_text()) for folder in ("python", "line"))
    for record in (one, other):
        del record["created"], record["result"]["seconds"]
    assert one == other


def test_without_a_folder_nothing_is_written(tables):
    before = sorted(Path().iterdir())
    run = learn_files(FILES, method="fedavg", rounds=3, degree=3)
    assert (run.folder, run.converged, len(run.history)) == (None, None, run.result.rounds)
    assert sorted(Path().iterdir()) == before


def test_what_a_user_should_know_is_in_the_record(tables):
    run = learn_files(FILES, degree=3, rounds=2, tol=1e-12, out="run")
    assert run.converged is False
    assert "Raise rounds or tol" in run.warnings["convergence"]
    assert read_run("run").warnings == run.warnings


def test_a_finished_run_is_only_read(tables):
    run = learn_files(FILES, degree=3, out="run")
    before = Path("run/run.json").stat().st_mtime_ns
    assert_same(learn_files(resume="run"), run)
    assert Path("run/run.json").stat().st_mtime_ns == before


def test_a_run_of_another_kind_leaves_nothing_of_the_one_it_replaces(tables):
    learn_files(FILES, degree=3, out="run")
    Path("run/notes.txt").write_text("mine")
    learn_files("oslo.csv", degree=3, out="run", force=True)
    assert {path.name for path in Path("run").iterdir()} == {
        "edges.csv", "graph.graphml", "graph.npz", "notes.txt", "partial.npz", "run.json", "scores.npz",
    }  # fmt: skip
    learn_files(FILES, degree=3, out="run", force=True)
    assert {path.name for path in Path("run").iterdir()} == {
        "consensus", "consensus.json", "consensus.npz", "history.csv", "notes.txt", "partial.npz", "run.json",
        "scores.npz", "silos",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("paths", "arguments", "says"),
    [
        ([], {}, "at least one table"),
        (FILES, {"max_iter": 5}, "max_iter: it belongs to one table"),
        ("oslo.csv", {"coupling": 0.5}, "coupling: it belongs to several silos"),
        (FILES, {"degre": 5}, "degre: no such setting. Expected some of .*degree"),
        (FILES, {"force": True}, "nothing to replace"),
        (FILES, {"stability": 4, "quorum": 4, "out": "run"}, "quorum: expected at most 3, the number of silos, got 4"),
        (FILES, {"resume": "run"}, "knows its tables"),
        ([], {"resume": "run", "degree": 3}, "knows its tables"),
        ([], {"resume": "run", "out": "other"}, "knows its tables"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(tables, paths, arguments, says):
    before = sorted(Path().rglob("*"))
    with pytest.raises(silograph.ParameterError, match=says):
        learn_files(paths, **arguments)
    assert sorted(Path().rglob("*")) == before


def test_a_damaged_request_is_refused(tables):
    Path("run/checkpoint").mkdir(parents=True)
    for text in ("{", "[]", "{}", '{"format": 2, "signals": ["a.csv"], "settings": 5}'):
        Path("run/checkpoint/request.json").write_text(text)
        with pytest.raises(silograph.CheckpointError, match="Start the run anew"):
            learn_files(resume="run")
