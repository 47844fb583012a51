"""The page of a comparison: whole, without scripts, and no name in it is markup."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from silograph import compare_groups
from silograph.graph.graph import Graph
from silograph.report.brain import VIEWS
from silograph.report.comparison import comparison_page
from silograph.runs.comparison_files import record_of

EVIL = "<script>alert(1)</script>{{record}}"


@pytest.fixture
def told():
    rng = np.random.default_rng(1)
    names, graphs = [EVIL, "a & b", "c", "d", "e"], {}
    for number in range(10):
        half = np.triu(rng.random((5, 5)), 1)
        half[2, 3] += 3.0 * (number < 5)
        graphs[f"s{number}"] = Graph.from_adjacency(half + half.T, names)

    class Model:
        graphs_ = graphs
        consensus_graph_ = graphs["s0"]
        n_samples_seen_ = (50,) * 10

    return compare_groups(Model(), {silo: "A>" if number < 5 else "B" for number, silo in enumerate(graphs)})


@pytest.fixture
def record(told, tmp_path: Path):
    for name in ("run.json", "people.csv"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    return record_of(told, settings={"seed": 0}, run=tmp_path, silos=told.pairs.silos, people=tmp_path / "people.csv")


def test_the_page_has_the_answer_and_no_script(told, record):
    page = comparison_page(told, record)
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "1 pair differs" in page
    assert "c – d" in page
    assert page.count("<svg") == 3
    assert not re.findall(r"\{\{(?!record\}\})\w+", page)
    assert "A&gt;" in page
    assert "a &amp; b" in page


def test_a_brain_is_seen_from_three_sides(told, record, tmp_path):
    rows = [f'"{name}",{10 * k},{5 * k},{3 * k}' for k, name in enumerate(told.pairs.names)]
    (tmp_path / "places.csv").write_text("\n".join(["name,x,y,z", *rows]), encoding="utf-8")
    page = comparison_page(told, record, coordinates=tmp_path / "places.csv")
    assert page.count("<svg") == 9
    assert page.count("class='head'") == 9
    assert all(view in page for view in VIEWS)
    assert "nilearn" in page


def test_what_cannot_be_compared_is_not_called_alike(tmp_path):
    half = np.triu(np.ones((3, 3)), 1)
    same = Graph.from_adjacency(half + half.T, list("abc"))
    model = SimpleNamespace(graphs_={f"s{k}": same for k in range(6)}, consensus_graph_=same, n_samples_seen_=[9] * 6)
    told = compare_groups(model, {f"s{k}": "AB"[k % 2] for k in range(6)})
    for name in ("run.json", "people.csv"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    about = {"run": tmp_path, "silos": told.pairs.silos, "people": tmp_path / "people.csv"}
    page = comparison_page(told, record_of(told, settings={}, **about))
    assert page.count("Whole graphs cannot be compared: all silos have the same.") == 2
    assert "nothing to compare" in page
    assert "differs" not in page.partition("<main>")[0]
    assert page.count("<table>") == 1  # how it was made


def test_graphs_without_an_edge_make_a_page_without_a_warning(tmp_path):
    none = Graph.from_adjacency(np.zeros((3, 3)), list("abc"))
    model = SimpleNamespace(graphs_={f"s{k}": none for k in range(6)}, consensus_graph_=none, n_samples_seen_=[9] * 6)
    told = compare_groups(model, {f"s{k}": "AB"[k % 2] for k in range(6)})
    for name in ("run.json", "people.csv"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    about = {"run": tmp_path, "silos": told.pairs.silos, "people": tmp_path / "people.csv"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "nothing to compare" in comparison_page(told, record_of(told, settings={}, **about))
