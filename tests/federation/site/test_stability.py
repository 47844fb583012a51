"""The stability of a site's own graphs: from its own rows alone, after the run, beside the consensus as it was."""

import csv
import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from silograph import read_graph, read_run
from silograph._util.files import bring_back
from silograph.analysis.beside import Beside
from silograph.analysis.stability import silo_stability
from silograph.cli.app import app
from silograph.federation.site.data import look_at_data
from silograph.federation.site.settings import read_site
from silograph.federation.site.silos import read_silos
from silograph.federation.site.stability import Halves, read_again, read_ended, tell_stability
from silograph.local.prox import add_pull, prox_step
from silograph.local.solvers.polish import solve_to_rounding
from silograph.runs.stability import read_stability, weights_on
from testing.conformance import EXACT, GIVEN, ONESHOT
from testing.consortium import NODES, Consortium

TOLD = ["source", "target", "weight", "stability", "mean_weight", "low", "high"]
TEN = Halves(number=10, threshold=0.8, graphs=True)


def ended(tmp_path: Path, learn: str = EXACT, *, masked: str | None = None, patients=None, **top: str):
    """A site's folder and the name of a run that has ended there."""
    consortium = Consortium(tmp_path, patients=patients or {})
    run = consortium.run(learn, **top) if masked is None else consortium.masked_run(learn, masked, **top)
    consortium.finish(run)
    home = consortium.folder / "oslo"
    (results,) = (home / "results").iterdir()
    return home, results


def tell(home: Path, *words: str):
    return CliRunner().invoke(app, ["site", "stability", *words, "--folder", str(home)])


def header(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return next(csv.reader(file))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def expected(home: Path, results: Path, silo: str, n_halves: int = 10):
    """What calling `silo_stability` tells, with numbers that are found here from files that people read."""
    about, settings = json.loads((results / "about.json").read_text()), read_site(home)
    run, data = read_ended(results), look_at_data(settings, home)
    silos = {one.name: one for one in read_silos(settings, data, run.study, about["nodes"], blocks=True).silos}
    consensus = read_graph(results / "consensus" / "graph.npz")
    found = about["parameters"]
    beside = Beside(
        consensus=weights_on(silos[silo].study_pairs, about["nodes"], consensus),
        **{name: found[name] for name in ("alpha", "beta", "zeta", "rho")},
        pull=about["pull"][silo],
    )
    return silos[silo], silo_stability(silos[silo], beside, n_halves)


@pytest.mark.parametrize("learn", [EXACT, ONESHOT, 'method = "independent"\n' + GIVEN, 'method = "ditto"\n' + GIVEN])
def test_of_one_table_each_edge_has_the_frequency_that_calling_silo_stability_tells(tmp_path, learn):
    home, results = ended(tmp_path, learn)
    before = read_graph(results / "silos/oslo" / "graph.npz")
    folder, told = tell_stability(home, results.name, TEN)
    assert folder == results
    silo, found = expected(home, results, "oslo")
    kept = read_stability(results / "stability.npz")
    assert kept.study.consensus is None
    assert kept.graph("oslo").frequency.tolist() == found.frequency.tolist()
    with (results / "silos/oslo" / "edges.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["target"]]
    at = weights_on(silo.study_pairs, NODES, before) > 0
    assert [float(row["stability"]) for row in rows] == found.frequency[at].tolist()
    assert [float(row["low"]) for row in rows] == found.low[at].tolist()
    assert read_graph(results / "silos/oslo" / "edges.csv") == before
    assert header(results / "silos/oslo" / "nodes.csv") == ["node", "strength", "low", "high"]
    assert read_graph(results / "silos/oslo" / "stable" / "graph.npz").n_edges == told["oslo"].stable_edges
    assert told["oslo"].stable_edges == (found.frequency[at] >= 0.8).sum()
    assert header(results / "consensus" / "edges.csv") == TOLD[:3]  # nothing is known of it here


def test_beside_the_consensus_all_rows_bring_forth_the_runs_own_graph(tmp_path):
    """So what is kept is what the run learned with, and half-samples are of its problem."""
    home, results = ended(tmp_path, 'method = "exact"\ntol = 1e-12\n' + GIVEN)
    run, settings = read_ended(results), read_site(home)
    (silo,) = read_again(home, settings, run)
    u = weights_on(silo.pairs, NODES, run.consensus)
    beside = run.beside("oslo", u)
    problem = silo.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
    w = prox_step(problem, u, metric=None, rho=beside.rho, strength=1.0, start=None).w
    assert w == pytest.approx(weights_on(silo.pairs, NODES, run.graphs["oslo"]), abs=1e-5)


def test_with_equal_weights_the_pull_that_is_kept_brings_forth_the_runs_own_graph(tmp_path):
    home, results = ended(tmp_path, 'method = "exact"\nweights = "equal"\ntol = 1e-12\n' + GIVEN)
    run, settings = read_ended(results), read_site(home)
    (silo,) = read_again(home, settings, run)
    u = weights_on(silo.pairs, NODES, run.consensus)
    beside = run.beside("oslo", u)
    assert beside.pull is not None
    problem = silo.problem(alpha=beside.alpha, beta=beside.beta, zeta=beside.zeta)
    w = solve_to_rounding(add_pull(problem, u, beside.pull * 4 * beside.beta), None).w
    assert w == pytest.approx(weights_on(silo.pairs, NODES, run.graphs["oslo"]), abs=1e-5)


def test_of_several_tables_the_run_is_read_with_stability_of_its_silos_alone(tmp_path):
    home, results = ended(tmp_path, patients={"oslo": 6})
    before = read_run(results)
    tell_stability(home, results.name, TEN)
    run = read_run(results)
    assert run.stability is not None
    assert run.record.stability is not None
    assert (run.record.stability.stable_edges, run.record.stability.bound) == (None, None)
    assert "cannot be told" in run.record.stability.says
    assert run.record.created == before.record.created
    assert run.main == before.main
    for silo in run.silos:
        assert run.graphs[silo.name] == before.graphs[silo.name]
        _, found = expected(home, results, silo.name)
        assert run.stability.graph(silo.name).frequency.tolist() == found.frequency.tolist()
        folder = results / "silos" / silo.name
        assert header(folder / "edges.csv") == TOLD
        assert read_graph(folder / "stable" / "graph.npz").n_edges == silo.stable_edges
    assert not (results / "consensus" / "nodes.csv").exists()


def test_a_table_that_lacks_nodes_has_its_own_pairs_only(tmp_path):
    consortium = Consortium(tmp_path)
    table = consortium.table("oslo")
    table.write_text("\n".join(line.rpartition(",")[0] for line in table.read_text().splitlines()) + "\n")
    consortium.finish(consortium.run('method = "exact"\n' + GIVEN, missing_nodes='"allow"'))
    home = consortium.folder / "oslo"
    (results,) = (home / "results").iterdir()
    tell_stability(home, results.name, TEN)
    kept = read_stability(results / "stability.npz").graph("oslo")
    silo, found = expected(home, results, "oslo")
    assert silo.nodes is not None
    assert np.isnan(kept.frequency).sum() == len(NODES) - 1
    np.testing.assert_array_equal(kept.frequency, found.frequency)
    assert np.isnan(kept.strength_low).tolist() == [False] * (len(NODES) - 1) + [True]


def test_pairs_that_too_few_sites_of_a_masked_sum_have_are_left_out_again(tmp_path):
    consortium = Consortium(tmp_path, sites=("kyoto", "lima", "oslo", "rome"))
    for site, lacks in (("kyoto", 6), ("lima", 7)):  # so that two sites have the pair of both
        rows = [line.split(",") for line in consortium.table(site).read_text().splitlines()]
        text = "\n".join(",".join(cell for k, cell in enumerate(row) if k != lacks) for row in rows)
        consortium.table(site).write_text(text + "\n")
    consortium.finish(consortium.masked_run('method = "oneshot"\n' + GIVEN, missing_nodes='"allow"'))
    home = consortium.folder / "oslo"
    (results,) = (home / "results").iterdir()
    tell_stability(home, results.name, TEN)
    kept = read_stability(results / "stability.npz")
    (lacking,) = np.flatnonzero(np.isnan(kept.graph("oslo").frequency))
    assert (kept.pairs.rows[lacking], kept.pairs.cols[lacking]) == (6, 7)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_tells_edges_why_there_is_no_bound_and_where_it_is_written(tmp_path):
    home, results = ended(tmp_path)
    said = tell(home, results.name, "--half-samples", "10")
    assert said.exit_code == 0, said.output
    assert "Found in at least 90% of 10 half-samples of your rows:\n  oslo: " in said.output
    assert said.output.count("cannot be bounded: each half-sample was drawn to the consensus as it is") == 1
    assert f"Written: {results}" in said.output
    assert "consensus" in said.output.splitlines()[-1]
    assert header(results / "silos/oslo" / "edges.csv") == TOLD
    assert not (results / "silos/oslo" / "stable").exists()
    as_json = json.loads(tell(home, results.name, "--half-samples", "10", "--json").stdout)
    assert as_json["oslo"]["half_samples"] == 10
    assert as_json["oslo"]["bound"] is None
    assert as_json == json.loads((results / "about.json").read_text())["stability"]


def test_a_run_named_without_its_generation_is_the_last_one(tmp_path):
    home, results = ended(tmp_path)
    name, _, generation = results.name.rpartition(".")
    assert generation == "1"
    assert tell(home, name, "--half-samples", "2").exit_code == 0


def test_a_second_call_replaces_the_first_and_leaves_alone_what_others_put_there(tmp_path):
    home, results = ended(tmp_path)
    before = digests(results)
    tell_stability(home, results.name, TEN)
    (results / "notes.txt").write_text("ours")
    tell_stability(home, results.name, Halves(number=6, threshold=0.9, graphs=False))
    assert read_stability(results / "stability.npz").n_halves == 6
    assert not (results / "silos/oslo" / "stable").exists()
    assert (results / "notes.txt").read_text() == "ours"
    assert digests(results)["silos/oslo/graph.npz"] == before["silos/oslo/graph.npz"]
    assert [path.name for path in results.parent.iterdir()] == [results.name]
    tell_stability(home, results.name, TEN)
    again = digests(results)
    tell_stability(home, results.name, TEN)
    assert digests(results) == again


# --- what is refused --------------------------------------------------------------------------------------------------


def refused(home: Path, results: Path, code: int, *words: str) -> str:
    """What a refusal says; results are as they were, to the byte."""
    before = digests(results)
    said = tell(home, results.name, "--half-samples", "10", *words)
    assert said.exit_code == code, said.output
    assert digests(results) == before
    return said.output


@pytest.mark.parametrize("patients", [None, {"oslo": 6}])
def test_changed_data_are_refused(tmp_path, patients):
    home, results = ended(tmp_path, patients=patients)
    table = home / "oslo.csv" if patients is None else next((home / "tables").iterdir())
    table.write_text(table.read_text() + ",".join(["0.5"] * len(NODES)) + "\n")
    assert f"has changed since run {results.name}" in refused(home, results, 1)


@pytest.mark.parametrize(
    ("learn", "says"),
    [
        ('method = "algorithm1"\nrounds = 3\n' + GIVEN, "leaves small weights on every pair"),
        ('method = "pooled"\n' + GIVEN, "one graph for all silos"),
    ],
)
def test_methods_without_own_graphs_that_can_be_learned_again_are_refused(tmp_path, learn, says):
    assert says in refused(*ended(tmp_path, learn), 2)


def test_numbers_that_make_no_sense_and_unknown_runs_are_refused(tmp_path):
    home, results = ended(tmp_path)
    assert "Expected an even number, got 5" in refused(home, results, 2, "--half-samples", "5")
    assert "half_samples" in refused(home, results, 2, "--half-samples", "0")
    assert "above 0 and up to 1" in refused(home, results, 2, "--stable", "1.5")
    assert f"Here are: {results.name}" in tell(home, "another").output
    (results / "study.toml").unlink()
    assert "earlier silograph" in refused(home, results, 1)


@pytest.mark.parametrize(("method", "allowed"), [("oneshot", True), ("exact", False)])
def test_with_epsilon_only_own_graphs_of_exact_rows_are_told(tmp_path, method, allowed):
    pytest.importorskip("opendp")
    consortium = Consortium(tmp_path)
    privacy = '[privacy]\nepsilon = 1.0\ndelta = 1e-5\nunit = "row"\nmin_samples = 40\n'
    shared = {"share_graphs": "false"} if allowed else {}
    consortium.finish(consortium.run(f'method = "{method}"\n{GIVEN}', tables=privacy, **shared))
    home = consortium.folder / "oslo"
    (results,) = (home / "results").iterdir()
    if allowed:
        assert tell(home, results.name, "--half-samples", "4").exit_code == 0
    else:
        assert "costs with noise" in refused(home, results, 2)


# --- kill -9 ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """A process ends here."""


@pytest.mark.parametrize("patients", [None, {"oslo": 6}])
def test_killed_while_it_learns_or_writes_it_leaves_the_old_results_whole(tmp_path, monkeypatch, patients):
    home, results = ended(tmp_path, patients=patients)
    before = digests(results)

    def killed(*arguments, **options):
        raise Killed

    for name in ("silo_stability", "write_json"):
        with monkeypatch.context() as some:
            some.setattr(f"silograph.federation.site.stability.{name}", killed)
            with pytest.raises(Killed):
                tell_stability(home, results.name, TEN)
        assert digests(results) == before


def test_killed_between_the_two_renames_the_next_call_brings_the_old_results_back(tmp_path):
    home, results = ended(tmp_path)
    before = digests(results)
    aside = results.with_name(f".{results.name}.old.x")
    aside.mkdir()
    results.replace(aside / results.name)
    bring_back(results)
    assert digests(results) == before
    results_again = results.with_name(f".{results.name}.old.y")
    results_again.mkdir()
    results.replace(results_again / results.name)
    tell_stability(home, results.name, TEN)
    assert header(results / "silos/oslo" / "edges.csv") == TOLD
    assert [path.name for path in results.parent.iterdir()] == [results.name]
