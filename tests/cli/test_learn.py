import hashlib
import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from typer.testing import CliRunner

import silograph
from silograph import SmoothGraph, read_graph
from silograph.cli.app import app
from testing.problems import smooth_signals

NAMES = [f"n{k}" for k in range(20)]


@pytest.fixture
def brain(tmp_path, rng, monkeypatch) -> pd.DataFrame:
    """A table brain.csv in the working folder."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(smooth_signals(rng, 80, 20), columns=NAMES)
    frame.to_csv("brain.csv", index=False)
    return frame


def run(*arguments: str):
    return CliRunner().invoke(app, ["learn", *arguments], catch_exceptions=False)


def test_learn_writes_a_run_that_other_tools_open(brain):
    result = run("brain.csv", "--degree", "5", "--out", "run")
    assert result.exit_code == 0, result.output
    for word in ("20 (80 samples)", "50", "5.00 (asked: 5)", "certified gap", "run/"):
        assert word in result.output
    assert sorted(path.name for path in Path("run").iterdir()) == [
        "edges.csv",
        "graph.graphml",
        "graph.npz",
        "partial.npz",
        "run.json",
        "scores.npz",
    ]
    expected = SmoothGraph(degree=5).fit(brain).graph_
    for name in ("graph.graphml", "edges.csv", "graph.npz"):
        graph = read_graph(f"run/{name}").reordered(NAMES)
        np.testing.assert_allclose(graph.adjacency(), expected.adjacency(), atol=1e-9)
    assert nx.read_graphml("run/graph.graphml").number_of_edges() == len(pd.read_csv("run/edges.csv")) == 50


def test_the_record_tells_what_was_done_and_to_what(brain):
    assert run("brain.csv", "--alpha", "1", "--beta", "2", "--standardize", "--out", "run").exit_code == 0
    record = json.loads(Path("run/run.json").read_text())
    expected = {
        "name": "brain",
        "file": "brain.csv",
        "sha256": hashlib.sha256(Path("brain.csv").read_bytes()).hexdigest(),
        "n_samples": 80,
        "n_nodes": 20,
        "row_counter": None,
    }
    assert [{name: silo[name] for name in expected} for silo in record["silos"]] == [expected]
    assert (record["format"], record["kind"]) == (7, "table")
    assert record["parameters"]["alpha"] == 1
    assert record["parameters"]["standardize"] is True
    assert record["result"]["relative_gap"] <= 1e-8
    assert record["versions"]["silograph"] == silograph.__version__
    model = SmoothGraph(alpha=1.0, beta=2.0, standardize=True).fit(brain)
    assert record["result"]["objective"] == pytest.approx(model.objective_, rel=1e-9)


def test_json_is_the_record_and_nothing_else(brain):
    result = run("brain.csv", "--degree", "3", "--json")
    assert json.loads(result.stdout)["result"]["degree_asked"] == 3


def test_quiet_prints_nothing_and_writes_all_the_same(brain):
    result = run("brain.csv", "--out", "run", "--quiet")
    assert result.output == ""
    assert Path("run/run.json").exists()


def test_force_replaces_a_run_and_nothing_but_a_run(brain):
    assert run("brain.csv", "--degree", "3", "--out", "run").exit_code == 0
    assert run("brain.csv", "--degree", "5", "--out", "run", "--force").exit_code == 0
    assert json.loads(Path("run/run.json").read_text())["result"]["edges"] == 50
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_text("miaow")
    result = run("brain.csv", "--out", "photos", "--force")
    assert result.exit_code == 1
    assert "run.json is missing" in result.output
    assert Path("photos/cat.jpg").read_text() == "miaow"
    assert sorted(path.name for path in Path().iterdir()) == ["brain.csv", "photos", "run"]


def test_force_keeps_what_the_user_put_beside_a_run(brain):
    assert run("brain.csv", "--out", "run").exit_code == 0
    Path("run/figures").mkdir()
    Path("run/figures/one.svg").write_text("<svg/>")
    Path("run/notes.txt").write_text("remember")
    assert run("brain.csv", "--degree", "3", "--out", "run", "--force").exit_code == 0
    assert json.loads(Path("run/run.json").read_text())["result"]["edges"] == 30
    assert Path("run/notes.txt").read_text() == "remember"
    assert Path("run/figures/one.svg").read_text() == "<svg/>"
    assert sorted(path.name for path in Path().iterdir()) == ["brain.csv", "run"]


def test_what_looks_wrong_is_told(brain):
    brain.T.to_csv("transposed.csv", index=False)
    assert "other way round" in run("transposed.csv").output
    brain.rename_axis("subject").to_csv("counted.csv")
    assert "counts the rows and was taken for a node: 'subject' in 'counted'" in run("counted.csv").output
    assert "counts the rows" not in run("counted.csv", "--drop", "subject").output
    assert run("brain.csv", "--force").exit_code == 2


def test_precomputed_distances_and_pair_lists_are_read_from_files(brain):
    distances = squareform(pdist(brain.T, "sqeuclidean")) / len(brain)
    pd.DataFrame(distances, columns=NAMES).to_csv("distances.csv", index=False)
    assert run("distances.csv", "--precomputed", "--degree", "5", "--out", "run").exit_code == 0
    expected = SmoothGraph(degree=5).fit(brain).adjacency_
    np.testing.assert_allclose(read_graph("run/graph.npz").adjacency(), expected, atol=1e-9)

    i, j = (NAMES[k] for k in np.unravel_index(expected.argmax(), expected.shape))
    Path("zeros.csv").write_text(f"source,target\n{i},{j}\n")
    assert run("brain.csv", "--forbid", "zeros.csv", "--out", "run2").exit_code == 0
    assert not read_graph("run2/graph.graphml").to_networkx().has_edge(i, j)

    Path("ring.csv").write_text("".join(f"n{k},n{(k + 1) % 20}\n" for k in range(20)))
    assert run("brain.csv", "--allow", "ring.csv", "--alpha", "1", "--beta", "1", "--out", "run3").exit_code == 0
    assert read_graph("run3/graph.npz").n_edges <= 20


def test_a_tolerance_that_is_not_met_has_its_own_exit_code_and_keeps_the_result(brain):
    result = run("brain.csv", "--alpha", "1", "--beta", "1e-3", "--max-iter", "1", "--out", "run")
    assert result.exit_code == 3
    assert "max_iter" in result.output
    assert json.loads(Path("run/run.json").read_text())["result"]["converged"] is False


TEXT = {
    "empty.csv": "",
    "one_node.csv": "a\n1\n2\n",
    "one_sample.csv": "a,b\n1,2\n",
    "text.csv": "a,b\n1,2\n3,word\n",
    "nan.csv": "a,b\n1,2\n3,nan\n",
    "inf.csv": "a,b\n1,2\n3,inf\n",
    "doubles.csv": "a,a\n1,2\n3,4\n",
    "ragged.csv": "a,b\n1,2\n3\n",
    "asymmetric.csv": "a,b,c\n0,1,2\n1,0,3\n9,3,0\n",
    "negative.csv": "a,b,c\n0,1,-2\n1,0,3\n-2,3,0\n",
    "unknown.csv": "n0,n99\n",
    "lonely.csv": "n0,n1\n",
    "case.csv": "N0,N1\nn2,n3\n",
    "ids.csv": "subject id,a,b\ns1,1,2\ns2,3,4\n",
    "gap.csv": "a,b\n1,2\n3,\n5,6\n",
    "wide.csv": ",".join([*(f"n{k}" for k in range(20)), "age"]) + "\n" + ",".join(["1"] * 21) + "\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("missing.csv", "missing.csv: no such file"),
        ("empty.csv", "empty.csv: the file is empty"),
        ("one_node.csv", "at least 2 nodes"),
        ("one_sample.csv", "at least 2 samples"),
        ("text.csv", "row 3, column 'b': expected a finite number, got 'word'"),
        ("nan.csv", "row 3, column 'b': expected a finite number, got 'nan'"),
        ("inf.csv", "row 3, column 'b': expected a finite number, got 'inf'"),
        ("doubles.csv", "different node names, got 'a'"),
        ("ragged.csv", "row 3: expected 2 values, got 1"),
        ("brain.csv --alpha -1 --beta 1", "alpha: expected a finite number > 0, got -1.0"),
        ("brain.csv --alpha nan --beta 1", "alpha: expected a finite number > 0, got nan"),
        ("brain.csv --alpha 1 --beta -2", "beta: expected a finite number > 0"),
        ("brain.csv --alpha 1 --beta nan", "beta: expected a finite number > 0"),
        ("brain.csv --alpha 1", "alpha was given alone"),
        ("brain.csv --degree 5 --alpha 1 --beta 1", "contradict"),
        ("brain.csv --tol -1", "tol: expected a finite number > 0"),
        ("brain.csv --tol nan", "tol: expected a finite number > 0"),
        ("brain.csv --degree 20", "less than the number of nodes (20), got 20"),
        ("brain.csv --degree nan", "degree: expected a finite number > 0"),
        ("brain.csv --degree -3", "degree: expected a finite number > 0"),
        ("asymmetric.csv --precomputed", "expected a symmetric matrix, got 2 here and 9 in row 3, column 'a'"),
        ("negative.csv --precomputed", "expected a distance ≥ 0, got -2"),
        ("brain.csv --precomputed", "square matrix"),
        ("brain.csv --allow unknown.csv", "expected the name of a node, got 'n99'"),
        ("brain.csv --forbid unknown.csv", "expected the name of a node, got 'n99'"),
        ("brain.csv --allow lonely.csv", "no allowed pair touches 'n2'"),
        ("brain.csv --allow nowhere.csv", "cannot be read"),
        ("brain.csv --forbid empty.csv", "empty.csv: expected at least one pair"),
        ("brain.csv --forbid case.csv", "case.csv, pair 1: expected the name of a node, got 'N0'"),
        ("brain.csv --key X", "chooses an array of an .npz file"),
        ("brain.csv --drop time", "no column is called 'time'"),
        ("ids.csv", "If 'subject id' is not a node, drop the column: --drop 'subject id'"),
        ("brain.csv wide.csv", "drop those that are no nodes (--drop age), until they agree; or let silos lack nodes"),
        ("gap.csv", "Leave out rows with gaps (--missing rows)"),
        ("brain.csv --keep-rows good", "cannot say which rows to keep (--keep-rows)"),
        ("asymmetric.csv --precomputed --standardize", "--standardize: precomputed distances cannot"),
        ("brain.csv --out old", "exists already. Choose another --out, or replace it with --force"),
        ("brain.csv --out brain.csv", "got a file"),
        ("brain.csv --out brain.csv/run", "cannot be written"),
    ],
)
def test_bad_input_gets_a_message_and_writes_nothing(brain, arguments, message):
    for name, content in TEXT.items():
        Path(name).write_text(content)
    Path("old").mkdir()
    Path("old/notes.txt").write_text("mine")
    before = sorted(Path().rglob("*"))
    given = arguments.split()
    result = run(*given, *(() if "--out" in given else ("--out", "new/run")))
    words = ("alpha", "beta", "tol", "degree", "less", "contradict", "--standardize")
    wrong_option = any(message.startswith(word) for word in words)
    assert result.exit_code == (2 if wrong_option else 1)
    assert message in result.output
    assert "Traceback" not in result.output
    assert sorted(Path().rglob("*")) == before


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a place where even root cannot write")
def test_a_place_that_cannot_be_written_is_refused_before_any_work(brain):
    result = run("brain.csv", "--out", "/proc/run")
    assert result.exit_code == 1
    assert "cannot be written" in result.output


@pytest.mark.parametrize("arguments", [["learn"], ["learn", "brain.csv", "--solver", "magic"], ["teach"]])
def test_wrong_usage_exits_with_2(brain, arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_as_a_process_it_keeps_results_and_complaints_apart(brain):
    command = [sys.executable, "-m", "silograph", "learn"]
    good = subprocess.run([*command, "brain.csv", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(good.stdout)["result"]["nodes"] == 20
    assert good.stderr == ""
    bad = subprocess.run([*command, "missing.csv"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert bad.stdout == ""
    assert bad.stderr.startswith("SignalError: missing.csv: no such file")


def test_help_teaches_by_example():
    result = CliRunner().invoke(app, ["learn", "--help"], env={"COLUMNS": "120"})
    for words in ("silograph learn brain.csv --degree 5 --out run/", "Exit codes", "--standardize"):
        assert words in result.output


def test_an_empty_folder_may_be_written_to(brain):
    Path("empty").mkdir()
    assert run("brain.csv", "--out", "empty").exit_code == 0
    assert Path("empty/graph.npz").is_file()
