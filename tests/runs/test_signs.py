"""Partial correlations in a run's folder: beside edges, for all pairs, and what is said of the smooth model."""

import csv
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from silograph import PartialCorrelationGraph, learn_files, read_run
from silograph.cli.app import app
from silograph.experiments.families import draw, families
from silograph.graph.pairs import Pairs
from silograph.runs.signs import can_tell_signs

NAMES = [f"region {k}" for k in range(20)]
SILOS = [f"site{k}" for k in range(5)]


def written(name: str, seed: int = 3) -> dict[str, pd.DataFrame]:
    family = next(family for family in families(20) if family.name == name)
    tables = {s: pd.DataFrame(x, columns=NAMES) for s, x in zip(SILOS, draw(family, seed).signals, strict=True)}
    for silo, table in tables.items():
        table.to_csv(f"{silo}.csv", index=False)
    return tables


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def column(path: str) -> dict[tuple[str, str], float]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return {
            (r["source"], r["target"]): float(r["partial_correlation"]) for r in csv.DictReader(file) if r["target"]
        }


def test_edges_of_all_graphs_have_the_partial_correlation_that_the_estimator_finds(folder):
    model = PartialCorrelationGraph().fit(written("Gaussian, signed"))
    run = learn_files([f"{s}.csv" for s in SILOS], out="run", stability=4, stable=0.5)
    place = {name: number for number, name in enumerate(NAMES)}
    for path, matrix in [("consensus", model.consensus_), ("silos/site2", model.partial_correlations_[2])]:
        for (one, other), value in column(f"run/{path}/edges.csv").items():
            assert value == pytest.approx(matrix[place[one], place[other]], abs=1e-8)
    assert len(column("run/silos/site2/edges.csv")) == run.graphs["site2"].n_edges
    edges = nx.read_graphml("run/consensus/graph.graphml").edges(data=True)
    assert all("partial_correlation" in data and "stability" in data for *_, data in edges)
    assert "partial_correlation" in Path("run/consensus/stable/edges.csv").read_text(encoding="utf-8").splitlines()[0]


def test_a_run_says_that_the_smooth_model_is_wrong_and_names_negative_pairs(folder):
    written("Gaussian, signed")
    run = learn_files([f"{s}.csv" for s in SILOS], out="run")
    told = json.loads(Path("run/run.json").read_text(encoding="utf-8"))["signs"]
    assert told["smooth_is_wrong"]
    assert told["gain"] > 2 * told["error"] > 0
    values = [pair["value"] for pair in told["negative"]]
    assert values
    assert values == sorted(values)
    assert values[0] < 0
    first = told["negative"][0]
    said = " ".join(CliRunner().invoke(app, ["learn", *(f"{s}.csv" for s in SILOS)]).output.split())
    assert f"The strongest negative pairs: '{first['source']}' – '{first['target']}' ({first['value']:.2f})" in said
    again = read_run("run")
    assert again.record == run.record
    np.testing.assert_array_equal(again.signs.own, run.signs.own)
    np.testing.assert_array_equal(again.signs.consensus, run.signs.consensus)


def test_a_run_on_smooth_signals_says_no_such_thing(folder):
    written("Erdős–Rényi")
    run = learn_files([f"{s}.csv" for s in SILOS], out="run")
    assert not run.record.signs.smooth_is_wrong
    assert run.record.signs.negative == ()
    agreed = run.signs.agreed(None, run.main)
    assert 0.5 < agreed.mean() < 1
    values = run.signs.columns(None, run.main)["partial_correlation"]
    assert values[agreed].min() > values[~agreed].max()


def test_one_table_has_its_own(folder):
    tables = written("Gaussian, signed")
    run = learn_files("site4.csv", out="run")
    model = PartialCorrelationGraph().fit([tables["site4"]])
    np.testing.assert_allclose(read_run("run").signs.consensus, model.consensus_, atol=1e-8)
    assert column("run/edges.csv")
    assert run.record.signs.blocks == 16


@pytest.mark.parametrize(
    "settings",
    [{"method": "oneshot", "epsilon": 5.0, "delta": 1e-5}, {"missing": "pairs"}, {"missing_nodes": "allow"}],
    ids=str,
)
def test_there_is_none_where_rows_are_not_exact_and_whole(folder, settings):
    for table in written("Gaussian").values():
        assert len(table) >= 20
    run = learn_files([f"{s}.csv" for s in SILOS], out="run", **settings)
    assert run.signs is None
    assert run.record.signs is None
    assert not Path("run/partial.npz").exists()
    assert "partial_correlation" not in Path("run/consensus/edges.csv").read_text(encoding="utf-8")


def test_a_constant_node_leaves_the_run_as_it_is(folder):
    tables = written("Gaussian")
    tables["site1"]["region 4"] = 7.0
    tables["site1"].to_csv("site1.csv", index=False)
    assert learn_files([f"{s}.csv" for s in SILOS], out="run").signs is None


def test_many_nodes_and_left_out_pairs_have_none():
    assert can_tell_signs(5, Pairs.all(200))
    assert not can_tell_signs(5, Pairs.all(201))
    assert not can_tell_signs(100, Pairs.all(200))
    assert not can_tell_signs(2, Pairs.all_but(5, [(0, 1)]))
