"""The second opinion on the page: a column, edges on which both agree, and strong negative pairs."""

import numpy as np
import pytest

from silograph import learn_files
from silograph.experiments.families import draw, families
from silograph.report.evidence import agreed_edges, edge_columns, signs_say
from silograph.report.payload import _edges
from silograph.runs.reader import RunData

SIGNED = next(family for family in families(20) if family.has_negative)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunData:
    folder = tmp_path_factory.mktemp("signed")
    for number, table in enumerate(draw(SIGNED, 3).signals):
        np.save(folder / f"site{number}.npy", table)
    return learn_files(sorted(folder.glob("*.npy")))


@pytest.mark.parametrize("silo", [None, "site3"])
def test_the_edges_that_are_shown_have_their_column_and_their_marks(run, silo):
    graph = run.main if silo is None else run.graphs[silo]
    shown = _edges(graph, 7, edge_columns(run, silo, graph), agreed_edges(run, silo, graph))
    assert len(shown["agreed"]) == len(shown["columns"]["partial_correlation"]) == 7
    kept = np.sort(np.argsort(-graph.weights, kind="stable")[:7])
    assert shown["agreed"] == run.signs.agreed(silo, graph)[kept].tolist()


def test_the_page_says_how_many_edges_both_have_and_names_negative_pairs(run):
    both, judged, pairs = signs_say(run)
    assert both.startswith(f"{run.signs.agreed(None, run.main).sum()} of {run.main.n_edges} edges of the consensus")
    assert judged == run.record.signs.says
    assert "negative pairs" not in judged  # they follow, and once is enough
    first = run.record.signs.negative[0]
    assert f"{first.source} – {first.target} ({first.value:.2f})" in pairs
