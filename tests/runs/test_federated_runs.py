"""The folder of a federation's run is read by the same reader, and holds what the same tables give in one process."""

import pytest

from silograph import CheckpointError, GraphError, learn_files, read_run
from silograph.report import write_report
from silograph.runs.layout import RunLayout
from silograph.runs.writer import adopt_results, begin_run
from testing.consortium import SITES, Consortium


def test_a_federations_run_is_read_as_any_other(tmp_path):
    consortium = Consortium(tmp_path)
    coordinated = consortium.run()
    results = consortium.finish(coordinated)
    out = tmp_path / "run"
    begin_run(out, {"format": 1, "federation": str(tmp_path), "run": coordinated.name})
    for unfinished in (read_run, lambda folder: learn_files(resume=folder)):
        with pytest.raises((GraphError, CheckpointError), match=f"silograph federation run --resume {out}"):
            unfinished(out)
    adopt_results(out, results)
    assert RunLayout(out).is_finished
    here = learn_files([consortium.table(site) for site in SITES], degree=3, coupling=0.5, whole=True)
    for folder in (coordinated.folder, results, out):
        run = read_run(folder)
        assert run.main == here.main
        assert dict(run.graphs) == dict(here.graphs)
        assert run.record.federation.run == coordinated.name
        assert run.result.relative_gap == here.result.relative_gap
        assert [row["objective"] for row in run.history] == [row["objective"] for row in here.history]
        assert write_report(folder).is_file()


def test_a_site_that_keeps_its_graph_is_known_by_what_it_reports(tmp_path):
    consortium = Consortium(tmp_path, share_graph=False)
    run = read_run(consortium.finish(consortium.run()))
    assert run.graphs == {}
    assert [silo.graph_shared for silo in run.silos] == [False] * 3
    assert all(silo.edges > 0 and silo.mean_degree == 2 * silo.edges / 8 for silo in run.silos)
