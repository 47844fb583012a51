"""`silograph learn` with several tables, as a user meets it."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from silograph import ConsensusGraph, read_graph
from silograph.cli.app import app
from testing.silo_problems import silo_signals

NAMES = ("oslo", "lima", "kyoto")


@pytest.fixture
def tables(tmp_path, monkeypatch, rng) -> dict[str, pd.DataFrame]:
    """Three silos in the working folder, one with its columns in another order."""
    monkeypatch.chdir(tmp_path)
    columns = [f"region {k}" for k in range(10)]
    out = {}
    for name, x in zip(NAMES, silo_signals(rng, "different", 3, 10), strict=True):
        out[name] = pd.DataFrame(x, columns=columns)
        frame = out[name][columns[::-1]] if name == "lima" else out[name]
        frame.to_csv(f"{name}.csv", index=False)
    return out


def run(*arguments: str, exit_code: int = 0):
    result = CliRunner().invoke(app, ["learn", *arguments])
    assert result.exit_code == exit_code, result.output
    return result


FILES = ("oslo.csv", "lima.csv", "kyoto.csv")


def test_three_tables_make_three_graphs_and_a_consensus(tables):
    result = run(*FILES, "--degree", "3", "--out", "run")
    model = ConsensusGraph(degree=3).fit(tables)
    graphs = {name: read_graph(Path("run/silos", name, "graph.npz")) for name in NAMES}
    for name in NAMES:
        np.testing.assert_allclose(graphs[name].adjacency(), model.graphs_[name].adjacency(), atol=1e-9)
        assert nx.read_graphml(Path("run/silos", name, "graph.graphml")).number_of_edges() == graphs[name].n_edges
        assert len(pd.read_csv(Path("run/silos", name, "edges.csv"))) == graphs[name].n_edges
    assert read_graph("run/consensus/graph.npz") == read_graph("run/consensus/graph.graphml")
    history = pd.read_csv("run/history.csv")
    assert history.gap.iloc[-1] <= 1e-6
    record = json.loads(Path("run/run.json").read_text())
    assert [silo["name"] for silo in record["silos"]] == list(NAMES)
    assert record["result"]["rounds"] == len(history)
    assert record["result"]["converged"]
    assert not Path("run/checkpoint").exists()
    for name in NAMES:
        assert name in result.output
    assert "certified gap" in result.output


def test_json_is_the_record_and_strict(tables):
    result = run(*FILES, "--coupling", "5", "--sparsity", "0", "--json")

    def refuse(constant):
        raise AssertionError(f"JSON has no {constant}")

    record = json.loads(result.stdout, parse_constant=refuse)
    assert record["result"]["nu"] is None  # infinite without sparsity
    assert all(silo["is_consensus"] and silo["contribution"] is None for silo in record["silos"])


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["oslo.csv", "nowhere.csv"], 1, "nowhere.csv"),
        (["oslo.csv", "oslo.csv"], 1, "was given twice"),
        (["oslo.csv", "lima.csv", "--drop", "date"], 1, "none of the tables"),
        ([*FILES, "--pull", "2"], 2, "no such parameter"),
        (["--resume", "run", "--degree", "3"], 2, "knows its tables and its options"),
        (["oslo.csv", "fewer.csv"], 1, "missing: 'region 9'"),
        (["oslo.csv", "broken.csv"], 1, "broken.csv, row"),
        ([], 2, "at least one table"),
        (["oslo.csv", "--coupling", "0.5"], 2, "several silos"),
        (["oslo.csv", "--method", "fedavg"], 2, "several silos"),
        ([*FILES, "--max-iter", "5"], 2, "one table"),
        ([*FILES, "--degree", "10"], 2, "less than the number of nodes"),
        ([*FILES, "--coupling", "-1"], 2, "≥ 0"),
        ([*FILES, "--nu", "1"], 2, "alone"),
        ([*FILES, "--method", "fedavg", "--sparsity", "0.1"], 2, "no such parameter"),
        ([*FILES, "--resume", "run"], 2, "Give neither"),
        (["--resume", "nowhere"], 1, "no unfinished run"),
    ],
)
def test_bad_input_gets_a_message_and_writes_nothing(tables, arguments, exit_code, words):
    tables["lima"].drop(columns="region 9").to_csv("fewer.csv", index=False)
    tables["lima"].replace(tables["lima"].iloc[3, 3], "n/a").to_csv("broken.csv", index=False)
    before = sorted(Path().rglob("*"))
    out = [] if "--resume" in arguments else ["--out", "new"]
    result = run(*arguments, *out, exit_code=exit_code)
    assert words in " ".join(result.output.split())
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_the_page_of_a_finished_run_is_written_whatever_is_printed(tables, option):
    run(*FILES, "--degree", "3", "--out", "run", "--quiet")
    result = run("--resume", "run", "--report", option)
    assert Path("run/report.html").is_file()
    if option == "--json":
        assert json.loads(result.stdout) == json.loads(Path("run/run.json").read_text())
    else:
        assert result.output == ""


def test_an_unfinished_run_of_a_federation_is_sent_to_its_own_command(tables):
    Path("run/checkpoint").mkdir(parents=True)
    Path("run/checkpoint/request.json").write_text('{"format": 1, "federation": "fed", "run": "0123"}')
    for arguments in (["learn", "--resume", "run"], ["learn", *FILES, "--out", "run"], ["report", "run"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 1
        assert "silograph federation run --resume run" in " ".join(result.output.split())
        assert "silograph learn --resume" not in " ".join(result.output.split())


def test_files_of_one_name_in_several_folders_take_the_folders_names(tables):
    for name in NAMES:
        Path(name).mkdir()
        tables[name].to_csv(Path(name, "signals.csv"), index=False)
    run(*(f"{name}/signals.csv" for name in NAMES), "--degree", "3", "--out", "run")
    assert sorted(path.name for path in Path("run/silos").iterdir()) == sorted(f"{name}_signals" for name in NAMES)


def test_an_existing_run_is_replaced_only_by_force_and_leaves_no_old_silo_behind(tables):
    run(*FILES, "--degree", "3", "--out", "run")
    assert "exists already" in run(*FILES, "--out", "run", exit_code=1).output
    Path("run/notes.txt").write_text("mine")
    run("oslo.csv", "kyoto.csv", "--degree", "3", "--out", "run", "--force")
    assert sorted(path.name for path in Path("run/silos").iterdir()) == ["kyoto", "oslo"]
    assert Path("run/notes.txt").read_text() == "mine"


def test_a_tolerance_that_is_not_met_has_its_own_exit_code_and_keeps_the_result(tables):
    result = run(*FILES, "--rounds", "3", "--tol", "1e-12", "--out", "run", exit_code=3)
    assert "Raise rounds or tol" in " ".join(result.output.split())
    assert not json.loads(Path("run/run.json").read_text())["result"]["converged"]


@pytest.mark.parametrize("method", ["algorithm1", "independent", "pooled", "fedavg", "fedprox", "mrmtl", "ditto"])
def test_every_method_has_a_name_on_the_command_line(tables, method):
    result = CliRunner().invoke(app, ["learn", *FILES, "--method", method, "--degree", "3", "--out", "run"])
    assert result.exit_code in (0, 3)
    assert json.loads(Path("run/run.json").read_text())["parameters"]["method"] == method


def test_help_teaches_several_silos():
    text = CliRunner().invoke(app, ["learn", "--help"]).output
    assert "oslo.csv lima.csv kyoto.csv" in text
    assert "--coupling" in text
    assert "--resume" in text


def test_a_column_of_one_table_alone_may_be_dropped(tables):
    run(*FILES, "--degree", "3", "--out", "plain")
    tables["lima"].assign(date="2014-01-01").to_csv("lima.csv", index=False)
    run(*FILES, "--degree", "3", "--drop", "date", "--out", "dropped")
    for name in ("consensus", "silos/lima"):
        one, other = (read_graph(Path(folder, name, "graph.npz")) for folder in ("plain", "dropped"))
        np.testing.assert_allclose(other.adjacency(), one.adjacency(), atol=1e-9)


def test_a_silo_in_other_units_is_remarked_upon(tables):
    (100 * tables["kyoto"]).to_csv("kyoto.csv", index=False)
    assert "same units" in " ".join(run(*FILES, "--degree", "3").output.split())


def test_the_record_tells_what_was_used_and_what_has_no_certificate(tables):
    record = json.loads(run(*FILES, "--degree", "3", "--coupling", "0.5", "--json").stdout)
    assert (record["result"]["coupling"], record["result"]["sparsity"], record["resumed"]) == (0.5, 0.1, False)
    record = json.loads(run(*FILES, "--degree", "3", "--method", "fedavg", "--json").stdout)
    assert (record["result"]["certified"], record["result"]["converged"]) == (False, None)
    record = json.loads(run(*FILES, "--rounds", "2", "--json", exit_code=3).stdout)
    assert record["result"]["converged"] is False
