"""A newcomer's run: from files, by the command line, beside a federation's consensus; and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from silograph import ConsensusGraph, GraphError, ParameterError, SignalError, SilosError, learn_files, read_run
from silograph.cli.app import app
from silograph.runs.consensus import read_fixed
from silograph.runs.layout import RunLayout
from silograph.runs.newcomer import make_newcomer
from silograph.runs.writer import begin_run
from testing.conformance import EXACT
from testing.consortium import Consortium, write_table
from testing.silo_problems import silo_signals

NODES = list("abcdefghi")
SETTINGS = {"degree": 3, "coupling": 0.5, "transform": "ranks", "newcomers": True}


@pytest.fixture(scope="module")
def frames() -> list[pd.DataFrame]:
    signals = silo_signals(np.random.default_rng(8), "different", 6, len(NODES), 60)
    return [pd.DataFrame(table, columns=NODES) for table in signals]


@pytest.fixture(scope="module")
def folder(frames, tmp_path_factory) -> Path:
    """Five tables and their run, and a sixth."""
    folder = tmp_path_factory.mktemp("newcomers")
    for number, frame in enumerate(frames):
        frame.to_csv(folder / (f"s{number}.csv" if number < 5 else "new.csv"), index=False, float_format="%.17g")
    learn_files(sorted(folder.glob("s*.csv")), **SETTINGS, out=folder / "run")
    return folder


def placed(folder: Path, **settings):
    return learn_files(folder / "new.csv", consensus=folder / "run", **settings)


def test_files_and_tables_in_memory_give_the_same(folder, frames):
    run = placed(folder)
    model = ConsensusGraph(degree=3, coupling=0.5, ranks=True, newcomers=True)
    model.fit({f"s{k}": frame for k, frame in enumerate(frames[:5])})
    found, told = model.place(frames[5]), run.record.newcomer
    assert found.graph == run.graphs["new"]
    assert (found.distance, found.farther_than, found.says) == (told.distance, told.farther_than, told.says)
    assert (told.silos, len(told.distances)) == (("s0", "s1", "s2", "s3", "s4"), 5)
    assert run.consensus_graph == read_run(folder / "run").consensus_graph


def test_the_whole_consensus_is_kept_exactly_and_known_again(folder, frames):
    layout = RunLayout(folder / "run")
    fixed = read_fixed(layout)
    model = ConsensusGraph(degree=3, coupling=0.5, ranks=True, whole=False)
    model.fit({f"s{k}": frame for k, frame in enumerate(frames[:5])})
    np.testing.assert_array_equal(fixed.weights, model._study.whole_consensus)
    assert (fixed.record.alpha, fixed.record.rho, fixed.record.degree) == (model.alpha_, model.rho_, 3.0)


def test_a_newcomers_run_is_whole_read_back_and_has_its_edges_alone(folder, tmp_path):
    run = placed(folder, out=tmp_path / "new")
    again = read_run(tmp_path / "new")
    assert again.record == run.record
    assert again.graphs == run.graphs
    known = {frozenset(edge[:2]) for graph in read_run(folder / "run").graphs.values() for edge in graph.edges()}
    known |= {frozenset(edge[:2]) for edge in run.main.edges()}
    alone = [edge for edge in run.graphs["new"].edges() if frozenset(edge[:2]) not in known]
    written = pd.read_csv(tmp_path / "new" / "alone" / "edges.csv").dropna()
    assert len(written) == len(alone) == run.record.newcomer.alone_edges
    assert not list((tmp_path / "new").glob(".*"))


def test_a_run_killed_as_it_was_written_is_finished_by_resume(folder, tmp_path):
    request = make_newcomer([folder / "new.csv"], folder / "run", {})
    begin_run(tmp_path / "new", request.as_data())
    run = learn_files(resume=tmp_path / "new")
    assert run.record.resumed
    assert run.graphs == placed(folder).graphs
    assert learn_files(resume=tmp_path / "new").record == run.record


def test_a_table_that_made_the_consensus_is_noticed(folder):
    run = learn_files(folder / "s3.csv", consensus=folder / "run")
    assert "This table is s3's, which made the consensus" in run.warnings["member"]


def test_ranks_are_taken_of_the_newcomer_as_of_the_silos(folder, frames, tmp_path):
    np.exp(frames[5]).to_csv(tmp_path / "new.csv", index=False, float_format="%.17g")
    bent = learn_files(tmp_path / "new.csv", consensus=folder / "run")
    assert bent.graphs == placed(folder).graphs


def test_the_command_line_tells_how_unusual_it_is_and_writes_a_page(folder, tmp_path):
    command = ["learn", str(folder / "new.csv"), "--consensus", str(folder / "run"), "--out", str(tmp_path / "new")]
    result = CliRunner().invoke(app, [*command, "--report"])
    assert result.exit_code == 0, result.output
    assert "of 5 silos that were left out" in " ".join(result.output.split())
    page = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert "How unusual is it?" in page
    assert "a newcomer: 9 nodes" in page
    told = json.loads(CliRunner().invoke(app, [*command[:4], "--json"]).stdout)
    assert told["newcomer"]["farther_than"] == placed(folder).record.newcomer.farther_than


def test_without_left_out_silos_nothing_is_said_of_how_usual(folder, tmp_path):
    learn_files(sorted(folder.glob("s*.csv")), degree=3, coupling=0.5, out=tmp_path / "run")
    told = learn_files(folder / "new.csv", consensus=tmp_path / "run").record.newcomer
    assert (told.distances, told.p, told.usual) == ((), None, None)
    assert "newcomers=True" in told.says


def test_beside_a_federations_consensus(tmp_path):
    consortium = Consortium(tmp_path)
    results = consortium.finish(consortium.run(EXACT, standardize="true"))
    path = tmp_path / "new.csv"
    write_table(path, 9)
    run = learn_files(path, consensus=results)
    assert run.record.newcomer.silos == tuple(silo.name for silo in read_run(results).silos)
    here = learn_files(list(consortium.tables.values()), degree=3, coupling=0.5, standardize=True, whole=True)
    assert run.parameters["standardize"]
    assert here.names == run.names


# --- what is refused --------------------------------------------------------------------------------------------------


def refused(path: Path, consensus: Path, out: Path, error: type, match: str, **settings) -> None:
    with pytest.raises(error, match=match):
        learn_files(path, consensus=consensus, out=out, **settings)
    assert not out.exists()


def test_other_nodes_are_named(folder, frames, tmp_path):
    for made, match in (
        (frames[5].rename(columns={"c": "z"}), r"nodes of the consensus \(9\), got 9; missing: 'c'; extra: 'z'"),
        (frames[5].drop(columns=["c"]), r"missing: 'c'\..* learn that again with missing_nodes='allow'"),
    ):
        made.to_csv(tmp_path / "t.csv", index=False)
        refused(tmp_path / "t.csv", folder / "run", tmp_path / "out", SilosError, match)
    frames[5].iloc[:3].to_csv(tmp_path / "t.csv", index=False)
    refused(tmp_path / "t.csv", folder / "run", tmp_path / "out", SignalError, "at least 4 rows to halve, got 3")


def test_what_is_no_finished_run_with_a_consensus_is_refused(folder, tmp_path):
    new, out = folder / "new.csv", tmp_path / "out"
    learn_files(folder / "s0.csv", degree=3, out=tmp_path / "one")
    refused(new, tmp_path / "one", out, GraphError, "is the run of one table, which has no consensus")
    refused(new, tmp_path / "none", out, GraphError, "got no folder")
    begin_run(tmp_path / "begun", {})
    refused(new, tmp_path / "begun", out, GraphError, "this run is not finished")
    placed(folder, out=tmp_path / "newcomer")
    refused(new, tmp_path / "newcomer", out, GraphError, "is a newcomer's run. Give the run of the consensus")
    some = sorted(folder.glob("s*.csv"))[:3]
    learn_files(some, method="pooled", out=tmp_path / "pooled")
    refused(new, tmp_path / "pooled", out, GraphError, r"has no consensus\.json \(method pooled\)")
    learn_files(some, method="oneshot", pull=1.0, epsilon=5.0, delta=1e-5, out=tmp_path / "noisy")
    refused(new, tmp_path / "noisy", out, GraphError, r"has no consensus\.json \(its rows were bounded for noise\)")


@pytest.mark.parametrize("name", ["consensus.json", "consensus.npz"])
def test_a_file_that_is_not_as_it_was_written_is_named(folder, tmp_path, name):
    learn_files(sorted(folder.glob("s*.csv"))[:3], degree=3, coupling=0.5, out=tmp_path / "run")
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes()[:-3])
    once = r"^\S+consensus\.json: cannot be read \((?!.*Bring.*Bring).*Bring the run's folder back"
    refused(folder / "new.csv", tmp_path / "run", tmp_path / "out", GraphError, once)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"degree": 4}, "degree: how a newcomer is learned was decided in the run"),
        ({"standardize": True}, "standardize: how a newcomer is learned"),
    ],
)
def test_what_the_run_decided_is_not_asked_for_anew(folder, tmp_path, settings, match):
    refused(folder / "new.csv", folder / "run", tmp_path / "out", ParameterError, match, **settings)
    with pytest.raises(ParameterError, match=r"one by one\. Give one table, not 2"):
        learn_files([folder / "new.csv", folder / "s0.csv"], consensus=folder / "run")
    with pytest.raises(ParameterError, match="newcomers: it belongs to several silos"):
        learn_files(folder / "new.csv", newcomers=True)


def test_a_run_with_left_out_silos_is_the_same_after_it_was_stopped(folder, tmp_path, monkeypatch):
    from silograph.runs import learn

    def stop(*_, **__):
        raise KeyboardInterrupt

    tables = sorted(folder.glob("s*.csv"))
    monkeypatch.setattr(learn, "leave_out", stop)
    with pytest.raises(KeyboardInterrupt):
        learn_files(tables, **SETTINGS, out=tmp_path / "run")
    monkeypatch.undo()
    learn_files(resume=tmp_path / "run")
    for name in ("consensus.json", "consensus.npz"):
        assert (tmp_path / "run" / name).read_bytes() == (folder / "run" / name).read_bytes()
    assert read_run(tmp_path / "run").parameters["transform"] == "ranks"
