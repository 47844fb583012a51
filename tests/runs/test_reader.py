"""A run's folder is read back as it was written, and what is wrong with one is said."""

import json
import math

import pytest

from silograph.errors import GraphError, SignalError
from silograph.graph.files import read_graph
from silograph.report.coordinates import read_coordinates
from silograph.runs.reader import read_run
from testing.made_runs import study_run, table_run


def test_a_run_over_silos_is_read_whole(tmp_path):
    folder = study_run(tmp_path / "run")
    run = read_run(folder)
    assert run.main == read_graph(folder / "consensus" / "graph.npz")
    assert list(run.graphs) == ["oslo", "lima", "kyoto"]
    assert run.graphs["lima"] == read_graph(folder / "silos" / "lima" / "edges.csv")
    assert len(run.history) == 8


def test_a_run_over_one_table_has_no_silos(tmp_path):
    run = read_run(table_run(tmp_path / "run"))
    assert run.silos == ()
    assert run.main.n_nodes == 12


def test_a_fused_silo_contributes_without_bound(tmp_path):
    def fuse(record):
        record["silos"][0] |= {"is_consensus": True, "contribution": None}

    first, *rest = read_run(study_run(tmp_path / "run", change=fuse)).silos
    assert first.fused
    assert first.contribution == math.inf
    assert not any(silo.fused for silo in rest)


def test_a_site_may_keep_its_graph(tmp_path):
    def keep(record):
        record["silos"][1] |= {"graph_shared": False, "edges": None, "contribution": None}
        record["federation"] = {"run": "first", "left_out": {}}

    run = read_run(study_run(tmp_path / "run", change=keep))
    assert list(run.graphs) == ["oslo", "kyoto"]
    assert run.silos[1].graph is None
    assert run.federation["run"] == "first"


def test_a_coordinators_folder_stands_for_the_results_in_it(tmp_path):
    study_run(tmp_path / "first" / "results")
    (tmp_path / "first" / "run.json").write_text('{"study": "another record"}')
    assert len(read_run(tmp_path / "first").silos) == 3


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: (run / "run.json").unlink(), "run.json is missing"),
        (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
        (lambda run: (run / "run.json").write_text('{"format": 99}'), "format 1"),
        (lambda run: (run / "checkpoint").mkdir(), "--resume"),
        (lambda run: (run / "silos" / "lima" / "graph.npz").unlink(), "graph.npz: missing"),
        (lambda run: (run / "history.csv").unlink(), "history.csv"),
        (lambda run: (run / "consensus" / "graph.npz").write_bytes(b"no"), "graph.npz"),
    ],
)
def test_what_is_wrong_with_a_run_is_said(tmp_path, spoil, says):
    folder = study_run(tmp_path / "run")
    spoil(folder)
    with pytest.raises(GraphError, match=says):
        read_run(folder)


def test_a_record_without_what_the_page_needs_is_refused(tmp_path):
    folder = study_run(tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    del record["silos"][0]["is_consensus"]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(GraphError, match="is_consensus"):
        read_run(folder)


def test_a_record_cannot_point_out_of_its_folder(tmp_path):
    folder = study_run(tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    record["silos"][0]["name"] = "../silos/lima"
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(GraphError, match="names of folders"):
        read_run(folder)


def test_there_is_no_run_where_there_is_no_folder(tmp_path):
    with pytest.raises(GraphError, match="no folder"):
        read_run(tmp_path / "nothing")


def test_coordinates_come_in_the_order_of_the_nodes(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("name,x,y,z\nb,4,5,6\nunused,0,0,0\na,1,2,3\n")
    assert read_coordinates(path, ["a", "b"]).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,x\na,1\n", "columns name, x, y"),
        ("name,x,y\na,1,2\n", "1 have none"),
        ("name,x,y\na,1,2\nb,one,2\n", "row 3, column 'x'"),
        ("name,x,y\na,1,2\na,1,2\nb,1,2\n", "row 3: 'a' has a row"),
        ("name,x,y\na,1,2\nb,nan,2\n", "finite"),
    ],
)
def test_what_is_wrong_with_coordinates_is_said(tmp_path, text, says):
    path = tmp_path / "places.csv"
    path.write_text(text)
    with pytest.raises(SignalError, match=says):
        read_coordinates(path, ["a", "b"])
