"""A run's folder is read back as it was written, and what is wrong with one is said."""

import json

import pytest

from silograph.errors import GraphError
from silograph.graph.files import read_graph
from silograph.report.measures import shares
from silograph.runs.reader import read_run
from testing.made_runs import federated, study_run, table_run


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

    first, *rest = silos = read_run(study_run(tmp_path / "run", change=fuse)).silos
    assert first.is_consensus
    assert shares(silos).tolist() == [1, 0, 0]
    assert not any(silo.is_consensus for silo in rest)


def test_a_site_may_keep_its_graph(tmp_path):
    def keep(record):
        record["silos"][1] |= {"graph_shared": False, "edges": None, "contribution": None}
        federated(record)

    run = read_run(study_run(tmp_path / "run", change=keep))
    assert list(run.graphs) == ["oslo", "kyoto"]
    assert not run.silos[1].graph_shared
    assert run.record.federation.run == "first"


def test_a_coordinators_folder_stands_for_the_results_in_it(tmp_path):
    study_run(tmp_path / "first" / "results")
    (tmp_path / "first" / "run.json").write_text('{"study": "another record"}')
    assert len(read_run(tmp_path / "first").silos) == 3


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: (run / "run.json").unlink(), "run.json is missing"),
        (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
        (lambda run: (run / "run.json").write_text('{"format": 99}'), "format 7"),
        (lambda run: (run / "checkpoint").mkdir(), "--resume"),
        (lambda run: (run / "silos" / "lima" / "graph.npz").unlink(), "graph.npz: missing"),
        (lambda run: (run / "history.csv").unlink(), "history.csv"),
        (lambda run: (run / "consensus" / "graph.npz").write_bytes(b"no"), "consensus/graph.npz: .* no archive"),
        (lambda run: (run / "silos" / "lima" / "graph.npz").write_bytes(b""), "lima/graph.npz: .* no archive"),
        (lambda run: (run / "partial.npz").write_bytes(b""), "partial.npz: .* no archive"),
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
