"""What every engine must do: end with the folder that learning in this process ends with, bit for bit.

A new engine's test is marked `every_method`, runs the study on its sites' tables, and calls `assert_conforms` with the
run's folder; or `assert_same_result` with its results and what `learned_here` learns from the same tables.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from silograph.data.alignment import order_of
from silograph.data.costs import TableOptions, read_costs
from silograph.engine.study import StudyResult, learn_silos
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.graph.files import read_graph, write_graph
from silograph.graph.graph import Graph, graph_on
from silograph.graph.pairs import Pairs
from silograph.protocol.silo import Silo

GIVEN = "alpha = 0.5\nbeta = 0.25\n"  # without a search for the degree, which takes rounds

# [learn] of a study: every method, by every solver it has, and the options that change what is sent
METHODS = [
    'method = "exact"\ndegree = 3',
    'method = "exact"\nnu = 2.0\nlam = 0.05\n' + GIVEN,
    'method = "exact"\nsparsity = 0\nrounds = 11\n' + GIVEN,
    'method = "exact"\ncoupling = 3.0\n' + GIVEN,  # all sites share one graph
    'method = "exact"\ncoupling = 0\n' + GIVEN,  # nothing is shared
    'method = "exact"\nweights = "equal"\nrounds = 6\n' + GIVEN,
    'method = "algorithm1"\nrounds = 3\n' + GIVEN,
    'method = "algorithm1"\nrounds = 3\nstep = "lipschitz"\n' + GIVEN,
    'method = "algorithm1"\nrounds = 3\nfresh = true\ngamma_cap = 5.0\n' + GIVEN,
    'method = "algorithm1"\nrounds = 2\nweights = "equal"\nlocal_steps = 2\n' + GIVEN,
    'method = "independent"\ndegree = 3',
    'method = "independent"\nsolver = "gradient"\nrounds = 5\n' + GIVEN,
    'method = "pooled"\n' + GIVEN,
    'method = "fedavg"\nrounds = 3\n' + GIVEN,
    'method = "fedprox"\nrounds = 3\npull = 0.5\n' + GIVEN,
    'method = "mrmtl"\nrounds = 5\n' + GIVEN,
    'method = "mrmtl"\nsolver = "gradient"\nrounds = 3\n' + GIVEN,
    'method = "ditto"\n' + GIVEN,
    'method = "ditto"\nsolver = "gradient"\nrounds = 3\n' + GIVEN,
    'method = "oneshot"\ndegree = 3',
    'method = "oneshot"\npull = 2.0\nsparsity = 0.2\n' + GIVEN,
    'method = "oneshot"\nsums = 3\n' + GIVEN,
]
EXACT = 'method = "exact"\nrounds = 4\n' + GIVEN
ALGORITHM1 = METHODS[6]
DITTO = 'method = "ditto"\n' + GIVEN
ONESHOT = 'method = "oneshot"\ndegree = 3\n'


def name_of(method: str) -> str:
    """A study's [learn] in one line, as the name of a test."""
    return method.replace("method = ", "").replace('"', "").strip().replace("\n", ", ")


every_method = pytest.mark.parametrize("method", METHODS, ids=name_of)


def assert_conforms(run: CoordinatorRun, tables: Mapping[str, Path], results: Path | None = None) -> None:
    """A run that an engine has brought to its end has just what learning from the tables in this process gives."""
    study = run.study()
    learned = learned_here(study, run.nodes, tables)
    pairs, folder = pairs_of(study, run.nodes), results or run.folder / "results"
    alone = [site for site in run.sites if site in tables]  # the others have several, and keep their graphs
    shared = alone if study.share_graphs else []
    assert_same_result(folder, learned, run.nodes, run.sites, pairs=pairs, shared=shared)


def learned_here(study: StudyFile, nodes: Sequence[str], tables: Mapping[str, Path]) -> StudyResult:
    """The study on the sites' tables, all in this process."""
    pairs = pairs_of(study, nodes)
    return learn_silos([silo_of(study, nodes, pairs, site, path) for site, path in tables.items()], study.settings)


def silo_of(study: StudyFile, nodes: Sequence[str], pairs: Pairs, site: str, path: Path) -> Silo:
    """A site's table as a silo, read as the site reads it."""
    options = TableOptions(standardize=study.standardize, transform=study.transform, missing=study.missing)
    table = options.open(path)
    some, blocks = study.settings.missing_nodes, study.settings.holds_out
    order = order_of(nodes, table.names, first="the study", silo=site, missing_nodes=some)
    read = read_costs(
        path, table, pairs, options, order=order, missing_nodes=some, blocks=blocks, on_progress=lambda part: None
    )
    about = {"name": site, "cost": read.cost, "n_samples": read.n_samples, "blocks": read.blocks}
    return Silo.on(pairs, read.present, **about)


def assert_same_result(
    results_folder: Path,
    study: StudyResult,
    nodes: Sequence[str],
    sites: Sequence[str],
    *,
    pairs: Pairs | None = None,
    shared: Sequence[str] | None = None,  # the sites that give their graphs away; None: all
) -> None:
    """The folder holds just what `study`, learned in this process, holds: graphs, evidence and history."""
    pairs, shared = Pairs.all(len(nodes)) if pairs is None else pairs, sites if shared is None else shared
    record = json.loads((results_folder / "run.json").read_text())
    _assert_same_graph(results_folder / "consensus", graph_on(pairs, study.consensus, nodes))
    kept = sorted(folder.name for folder in results_folder.glob("silos/*"))
    assert kept == sorted(shared)
    for site in kept:
        _assert_same_graph(
            results_folder / "silos" / site, graph_on(pairs, study.graphs[site], nodes, study.nodes[site])
        )
    _assert_same_evidence(record["result"], study)
    assert [silo["name"] for silo in record["silos"]] == list(sites)
    for silo in record["silos"]:
        if silo["n_silos"] is not None:
            assert (silo["contribution"], silo["edges"], silo["graph_shared"]) == (None, None, False)
            continue
        reported = study.reported.get(silo["name"], {})
        assert silo["contribution"] == _finite(reported.get("contribution"))
        assert silo["n_samples"] == reported.get("samples")
        assert silo["edges"] == (_n_edges(study, silo["name"]) if silo["name"] in shared else reported.get("edges"))
    _assert_same_history(results_folder / "history.csv", study)


def digests(results_folder: Path) -> dict[str, str]:
    """SHA-256 of each file of the results that does not tell the time."""
    files = [path for path in sorted(results_folder.rglob("*")) if path.is_file() and path.name != "run.json"]
    found = {str(path.relative_to(results_folder)): sha256(path.read_bytes()).hexdigest() for path in files}
    record = json.loads((results_folder / "run.json").read_text())
    del record["result"]["seconds"]
    return found | {"run.json": json.dumps([record["result"], record["silos"], record["parameters"]])}


def _assert_same_graph(folder: Path, expected: Graph) -> None:
    write_graph(expected, beside := folder / "expected.npz")
    try:
        assert (folder / "graph.npz").read_bytes() == beside.read_bytes()
    finally:
        beside.unlink()
    for name in ("graph.graphml", "edges.csv"):
        assert _edges(read_graph(folder / name)) == _edges(expected)


def _assert_same_evidence(result: Mapping[str, object], study: StudyResult) -> None:
    expected = {
        "objective": study.objective,
        "relative_gap": _finite(study.gap),
        "rounds": study.n_rounds,
        "setup_rounds": study.n_setup_rounds,
        "alpha": study.alpha,
        "beta": study.beta,
        "rho": study.rho,
        "lam": study.lam,
        "nu": _finite(study.nu),
        "converged": None if math.isnan(study.gap) else study.converged,
        "degree_reached": study.degree_reached,
        "degree_alone": study.degree_alone,
    }
    assert {name: result[name] for name in expected} == expected


def _assert_same_history(path: Path, study: StudyResult) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(study.history)
    for row, record in zip(rows, study.history, strict=True):
        assert {name: value for name, value in row.items() if value} == {name: str(x) for name, x in record.items()}


def _edges(graph: Graph) -> set[tuple[frozenset[str], float]]:
    return {(frozenset((left, right)), weight) for left, right, weight in graph.edges()}


def _n_edges(study: StudyResult, site: str) -> int:
    return int((study.graphs[site] > 0).sum())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
