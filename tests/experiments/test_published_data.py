"""Tables IV and V and their figures: on stand-ins, whose answers are known, and on the data where they are kept."""

import os
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from silograph.datasets import load_abide, load_coil20
from silograph.datasets.regions import region_centres
from silograph.experiments import figure_brain, figure_communities, table4, table5
from silograph.experiments.catalogue import EXPERIMENTS
from silograph.experiments.files import write_outcome
from silograph.experiments.grids import learn_point
from silograph.experiments.images import agreement, communities, draw_objects, silos_of, views_of
from silograph.experiments.lab import Lab
from silograph.experiments.recipe import CONTENDERS
from silograph.experiments.session import QUICK, Session
from testing.small_experiments import SCALE, promised


def test_objects_that_are_easy_to_tell_apart_are_all_found(session):
    (table,) = table4.run(session).tables
    for row in ("IGL", "FedAvg", "FedProx", "MRMTL", "Ditto", "PPGL-L", "PPGL-C", "PPGL-L, exact", "PPGL-C, exact"):
        for column in ("NMI", "RI", "FMI", "NMI held out"):
            assert table.number(table4.SCALED, row, column).ours > 0.9
    assert table.blocks == (table4.SCALED, table4.RAW)
    assert table.number(table4.RAW, "PPGL-C", "NMI").paper == 1
    assert table.number(table4.SCALED, "IGL", "RI").paper == 0.855
    assert table.rows(table4.RAW) == table.rows(table4.SCALED)


def test_beta_is_the_one_that_is_best_for_learning_alone(session):
    found = table4.learn_and_choose(session)
    betas = session.scale.image_grids.own_betas
    assert found.recipe.beta in betas
    assert len(found.beta_of_halves) == 2
    nmi = []
    for beta in betas:  # the same by the estimator, at each β
        of_draws = []
        for seed in range(session.scale.draws):
            views = views_of(draw_objects(seed), session.coil)
            graphs = [
                learn_point([silo], CONTENDERS["igl"], replace(session.recipe, beta=beta), {}).graphs[silo.name]
                for silo in silos_of(views)
            ]
            of_draws.append(np.mean([agreement(communities(w, 0.01), views.labels)[0] for w in graphs]))
        nmi.append(np.mean(of_draws))
    assert found.recipe.beta == betas[int(np.argmax(nmi))]
    assert found.chosen["IGL"].scores[:, 0].mean() == pytest.approx(max(nmi))


def test_two_draws_cannot_tell_whether_the_consensus_is_best(session):
    assert {claim.verdict for claim in table4.claims(session)} == {"too few draws"}


def test_communities_are_drawn_with_a_marker_per_object(session):
    (picture,) = figure_communities.run(session).pictures
    axes = [ax for ax in picture.figure.axes if ax.get_title()]
    assert [ax.get_title().partition(" NMI")[0] for ax in axes] == [
        "IGL of view 2:", "FedAvg of view 2:", "PPGL-L of view 2:", "PPGL-C:",
    ]  # fmt: skip
    for ax in axes:
        markers = [points for points in ax.collections if not isinstance(points, LineCollection)]
        assert sum(len(points.get_offsets()) for points in markers) == 48


def test_table_5_compares_the_groups_subject_by_subject(session):
    table, _ = table5.run(session).tables
    (result,) = table5.studies(session, [(10.0, 0.1)], "exact")
    for row, members in (("Autism", result["is_autistic"]), ("Control", ~result["is_autistic"])):
        edges = (result["weights"][members] > 0.01).sum(axis=1)
        assert table.number("Exact", row, "edges").ours == pytest.approx(edges.mean())
        assert table.number("Exact", row, "edges").error == pytest.approx(edges.std(ddof=1) / np.sqrt(len(edges)))
        assert table.number("Exact", row, "density").ours == pytest.approx(edges.mean() / 66)
        weights = [w[w > 0.01].mean() for w in result["weights"][members]]
        assert table.number("Exact", row, "mean weight").ours == pytest.approx(np.mean(weights))
    assert table.number("Algorithm 1", "Autism", "density").paper == pytest.approx(114 / 561)
    assert "7 autistic subjects and 9 controls" in table.notes[0]
    assert "12 regions" in table.notes[0]


def test_other_parameters_and_other_subjects_stand_in_a_table_of_their_own(session):
    _, table = table5.run(session).tables
    assert len(table.rows("All subjects")) == 5
    assert table.rows("Random subjects") == ("draw 1", "draw 2")
    for number in table.numbers:
        if number.column.startswith("p"):
            assert 0 < number.ours <= 1


def test_groups_that_are_drawn_alike_do_not_differ(session):
    fewer, shared, changed = table5.claims(session)
    assert fewer.verdict == "did not hold"
    assert shared.verdict == "held"  # all are mixed alike
    assert changed.verdict == "did not hold"


def drawn_lines(ax):
    """Edges, whoever drew them; outlines of a head are patches."""
    return sum(len(lines.get_segments()) for lines in ax.collections if isinstance(lines, LineCollection)) + sum(
        isinstance(line, Line2D) and line.get_color() != "k" for line in ax.lines
    )


def test_known_regions_are_drawn_in_a_head_from_three_sides_with_all_their_edges(session):
    pytest.importorskip("nilearn")
    assert region_centres(load_abide(session.abide).regions) is not None
    (picture,) = figure_brain.run(session).pictures
    titles = [text.get_text() for text in picture.figure.texts]
    views = ("sagittal", "axial", "coronal")
    assert titles == [f"{group}: {view}" for group in ("Controls", "Autism") for view in views]
    (result,) = table5.studies(session, [(10.0, 0.1)], "exact")
    first = result["is_autistic"]
    expected = [int((result["weights"][members].mean(axis=0) > 0).sum()) for members in (~first, first)]
    counts = [count for ax in picture.figure.axes if (count := drawn_lines(ax))]
    assert counts == [expected[0]] * 3 + [expected[1]] * 3


def test_without_nilearn_the_same_places_are_drawn_without_a_head(session, monkeypatch):
    monkeypatch.setattr(figure_brain, "find_spec", lambda name: None)
    (picture,) = figure_brain.run(session).pictures
    assert len(picture.figure.axes) == 6
    centres = region_centres(load_abide(session.abide).regions)
    for ax, kept in zip(picture.figure.axes, [(1, 2), (0, 1), (0, 2)] * 2, strict=True):
        np.testing.assert_allclose(ax.collections[-1].get_offsets(), centres[:, kept])


def test_unknown_regions_stand_on_a_circle(session, foreign_abide):
    (picture,) = figure_brain.run(replace(session, abide=foreign_abide)).pictures
    assert [ax.get_title() for ax in picture.figure.axes] == ["Controls", "Autism"]
    places = picture.figure.axes[0].collections[-1].get_offsets()
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1)
    assert len(places) == 12


# --- the published data themselves ------------------------------------------------------------------------------------

published = pytest.mark.skipif(
    not os.environ.get("SILOGRAPH_DATA"), reason="SILOGRAPH_DATA is not set: the published data are not here"
)


@published
def test_every_region_of_the_published_brains_has_a_place():
    centres = region_centres(load_abide().regions)
    assert centres.shape == (109, 3)
    assert (np.abs(centres) < 110).all()


@published
def test_a_small_table_4_on_coil_20(tmp_path):
    load_coil20()
    (table,) = table4.run(Session(lab=Lab(kept=tmp_path), scale=replace(SCALE, draws=2))).tables
    for number in table.numbers:
        assert 0 <= number.ours <= 1
    assert table.number(table4.SCALED, "PPGL-C", "NMI").ours > 0.5


@published
def test_a_small_table_5_on_abide(tmp_path):
    scale = replace(SCALE, subjects=3, subset=2, subsets=1)
    table, _ = table5.run(Session(lab=Lab(kept=tmp_path), scale=scale)).tables
    assert "109 regions" in table.notes[0]


@published
@pytest.mark.slow
def test_all_experiments_run_on_the_published_data_and_make_every_file(tmp_path):
    session = Session(lab=Lab(kept=tmp_path / "cells", workers=2), scale=QUICK)
    for experiment in EXPERIMENTS:
        written = {path.name for path in write_outcome(experiment.run(session), tmp_path / "out")}
        assert written >= set(promised(experiment.name))
    findings = (tmp_path / "out" / "findings.md").read_text(encoding="utf-8")
    assert "not tested" not in findings
