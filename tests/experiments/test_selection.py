"""Each row's own best point, and the honest choice beside it, on numbers whose answer is known."""

import numpy as np
import pytest

from silograph.experiments.comparison import MAIN_ROWS, format_point, table_of
from silograph.experiments.recipe import CONTENDERS, grid_of
from silograph.experiments.scenarios import SIZES
from silograph.experiments.selection import CONSENSUS, Row, best_point, choose, choose_from, held_out, scores_of
from testing.small_experiments import RECIPE


def test_the_best_point_has_the_best_mean_and_is_the_first_of_equals():
    assert best_point(np.array([[0.1, 0.9, 0.5], [0.9, 0.3, 0.5]])) == 1
    assert best_point(np.array([[0.5, 0.7, 0.7]])) == 1


def test_each_half_is_scored_at_the_point_that_the_other_half_chose():
    # Even seeds do best at point 0, odd ones at point 1: each half gets the other's
    f_scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    np.testing.assert_array_equal(held_out(f_scores), [0.1, 0.2, 0.3, 0.4])


def test_an_odd_number_of_seeds_is_split_too():
    f_scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    np.testing.assert_array_equal(held_out(f_scores), [0.1, 0.2, 0.3])


def test_where_all_agree_nothing_is_lost_by_holding_out(rng):
    f_scores = rng.random((10, 4)) * 0.1 + np.array([0.0, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(held_out(f_scores), f_scores[:, 1])


def test_a_single_seed_has_no_other_half():
    assert np.isnan(held_out(np.array([[0.9, 0.1]]))).all()


def test_holding_out_is_honest_where_choosing_flatters(rng):
    """Of many points that are all alike, the best looks good on the seeds that chose it, and on no others."""
    draws = rng.normal(size=(500, 10, 30))
    chosen = [noise[:, best_point(noise)].mean() for noise in draws]
    honest = [held_out(noise).mean() for noise in draws]
    assert np.mean(chosen) > 0.5
    assert abs(np.mean(honest)) < 0.06  # four standard errors


def trial(values):
    """Two silos and the consensus, one point per value; measures in the order of the tables."""
    return {"ppgl/scores": np.array([[[v, v, v, 1 - v], [v + 0.2] * 4, [v + 0.3] * 4] for v in values])}


def test_local_scores_are_means_over_silos_and_the_consensus_stands_last():
    results = [trial([0.1, 0.2]), trial([0.3, 0.4])]
    local = scores_of(Row(label="PPGL-L", method="ppgl"), 2, results)
    assert local.shape == (2, 2, 4)
    np.testing.assert_allclose(local[:, :, 2], [[0.2, 0.3], [0.4, 0.5]])
    consensus = scores_of(Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS), 2, results)
    np.testing.assert_allclose(consensus[:, :, 2], [[0.4, 0.5], [0.6, 0.7]])


def test_a_row_s_choice_is_its_point_with_all_measures_there(rng):
    scores = rng.random((6, 4, 3))
    points = [{"nu": nu, "lam": lam} for nu in (1.0, 2.0) for lam in (0.1, 0.2)]
    for by in range(3):
        chosen = choose_from(scores, points, by=by)
        assert chosen.index == scores[:, :, by].mean(axis=0).argmax()
        assert chosen.point == points[chosen.index]
        np.testing.assert_array_equal(chosen.scores, scores[:, chosen.index])
        np.testing.assert_array_equal(chosen.held_out, held_out(scores[:, :, by]))


def test_parameters_at_an_edge_of_their_grid_are_told():
    points = [{"nu": nu, "lam": lam} for nu in (1.0, 2.0, 3.0) for lam in (0.1, 0.2, 0.3)]
    for index, edges in ((4, {}), (3, {"lam": 0.1}), (8, {"nu": 3.0, "lam": 0.3}), (1, {"nu": 1.0})):
        scores = np.zeros((2, 9, 1))
        scores[:, index] = 1
        assert choose_from(scores, points, by=0).at_edge == edges
    assert choose_from(np.zeros((2, 1, 1)), [{}], by=0).at_edge == {}


def test_rows_of_a_table_choose_by_f_score(session):
    scenario = SIZES[0]
    (trials,) = session.trials(scenario)
    for row in MAIN_ROWS:
        chosen = choose(row, scenario, trials, RECIPE)
        every = np.stack([arrays[f"{row.method}/scores"] for arrays in trials])
        graphs = every[:, :, 5] if row.graphs == CONSENSUS else every[:, :, :5].mean(axis=2)
        assert chosen.scores[:, 2].mean() == pytest.approx(graphs[:, :, 2].mean(axis=0).max())
        assert chosen.point == grid_of(CONTENDERS[row.method], RECIPE)[chosen.index]


def test_the_notes_of_a_table_name_every_choice_and_those_at_the_edge_of_a_grid(session):
    scenario = SIZES[0]
    (trials,) = session.trials(scenario)
    chosen = {row.label: choose(row, scenario, trials, RECIPE) for row in MAIN_ROWS}
    notes = "\n".join(table_of("name", "title", {scenario.label: chosen}, {}, RECIPE).notes)
    for label, of_row in chosen.items():
        if of_row.point:
            edges = {name: value for name, value in of_row.point.items() if value != 0}
            assert of_row.at_edge == edges  # grids of two values have nothing but edges; below 0 is nothing
            assert notes.count(f"{label} {format_point(of_row.point)}") >= (2 if edges == of_row.point else 1)
    assert format_point({"nu": 2.5, "lam": 0.01}) == "ν=2.5 λ=0.01"
