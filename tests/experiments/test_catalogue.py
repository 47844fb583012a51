"""Everything in the catalogue runs, on stand-ins for published data, and makes the files that it promises."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from silograph.errors import DataError, ParameterError
from silograph.experiments import catalogue
from silograph.experiments.catalogue import EXPERIMENTS, choose_experiments
from silograph.experiments.comparison import ONE_SUM_ROWS
from silograph.experiments.files import write_outcome
from silograph.experiments.index import index_page
from silograph.experiments.lab import Lab
from silograph.experiments.scenarios import NESTED, SHARES, SIZES, UNEQUAL, UNRELATED
from silograph.experiments.session import FULL_SIZE, QUICK, Session
from testing.small_experiments import SCALE, promised

NAMES = [experiment.name for experiment in EXPERIMENTS]
FOLDER = Path(catalogue.__file__).parent


def test_names_are_unique_and_say_what_is_shown():
    assert len(set(NAMES)) == len(NAMES)
    assert "all" not in NAMES
    assert all(experiment.shows and experiment.data for experiment in EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_every_experiment_has_a_function_that_runs_it(experiment):
    assert callable(experiment.run)


def test_every_table_and_figure_of_the_folder_is_in_the_catalogue():
    files = {path.stem.replace("_", "-") for kind in ("table", "figure_") for path in FOLDER.glob(f"{kind}*.py")}
    assert files | {"findings", "accuracy"} == set(NAMES)


def test_the_order_is_ours_and_all_means_all_of_the_paper():
    assert [one.name for one in choose_experiments(("figure-brain", "table1"))] == ["table1", "figure-brain"]
    assert choose_experiments(("table2", "all")) == tuple(one for one in EXPERIMENTS if one.name != "accuracy")
    assert choose_experiments(("accuracy", "all")) == EXPERIMENTS
    assert [one.name for one in choose_experiments(("table1", "table1"))] == ["table1"]


def test_a_wrong_name_is_told_with_the_right_ones():
    with pytest.raises(ParameterError, match=r"tabel1.*table1.*all"):
        choose_experiments(("table1", "tabel1"))


def test_a_quick_look_is_smaller_in_every_way():
    assert QUICK.is_quick
    assert not FULL_SIZE.is_quick
    for name in ("seeds", "draws", "subset", "subsets", "permutations"):
        assert getattr(QUICK, name) < getattr(FULL_SIZE, name)
    for name in ("betas", "nus", "lams", "strengths", "sparsities"):
        assert len(getattr(QUICK.recipe.grids, name)) < len(getattr(FULL_SIZE.recipe.grids, name))
        assert set(getattr(QUICK.recipe.grids, name)) <= set(getattr(FULL_SIZE.recipe.grids, name))
    assert replace(QUICK.recipe, grids=FULL_SIZE.recipe.grids) == FULL_SIZE.recipe


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_every_experiment_makes_the_files_it_promises(experiment, folder):
    for name in promised(experiment.name):
        assert (folder / name).stat().st_size > 100, name


def test_all_numbers_are_finite_and_every_block_is_whole(outcomes):
    tables = [table for outcome in outcomes.values() for table in outcome.tables]
    tables += [picture.data for outcome in outcomes.values() for picture in outcome.pictures if picture.data]
    assert len(tables) >= 10
    for table in tables:
        places = [(number.block, number.row, number.column) for number in table.numbers]
        assert len(set(places)) == len(places), table.name
        assert np.isfinite([number.ours for number in table.numbers]).all(), table.name
        assert all(number.error is None or number.error >= 0 for number in table.numbers)


def test_links_of_all_pages_lead_somewhere(session, folder):
    (folder / "index.md").write_text(index_page(session, EXPERIMENTS), encoding="utf-8")
    for page in folder.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (folder / target).exists(), f"{page.name}: {target}"


def test_the_index_lists_what_was_run_and_the_settings(session):
    page = index_page(session, EXPERIMENTS[:3])
    assert [name for name in NAMES if f"| [{name}]({name}.md) |" in page] == NAMES[:3]
    for words in ("β = 0.7", "ζ = 0.5", "η = 0.005", "ξ = 0.9", "T = 50", "K = 5"):
        assert words in page
    for grid in ("{2, 20}", "{20, 200}", "{0.05, 0.5}", "{0.3, 3}"):
        assert grid in page
    assert "quick look" in page
    full = index_page(Session(scale=replace(SCALE, is_quick=False)), EXPERIMENTS)
    assert "quick look" not in full


def test_figures_are_the_same_bytes_when_drawn_again(session, folder, tmp_path):
    experiment = next(one for one in EXPERIMENTS if one.name == "figure-graphs")
    for path in write_outcome(experiment.run(session), tmp_path):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_tables_have_the_paper_s_numbers_beside_ours(outcomes):
    from silograph.experiments.printed import TABLE_1, TABLE_2, TABLE_3

    for name, printed in (("table1", TABLE_1), ("table2", TABLE_2), ("table3", TABLE_3)):
        (table,) = outcomes[name].tables
        assert table.blocks == tuple(printed)
        for block, rows in printed.items():
            for row, values in rows.items():
                for column, value in zip(("Precision", "Recall", "FS", "RE"), values, strict=True):
                    assert table.number(block, row, column).paper == value
                    assert table.number(block, f"{row}, exact", column) is None or (
                        table.number(block, f"{row}, exact", column).paper == value
                    )
                for ours_alone in ("FS held out", "AP"):
                    assert table.number(block, row, ours_alone).paper is None


def test_one_sum_stands_in_tables_1_to_3_and_the_consensus_of_more_sums_in_a_table_of_its_own(outcomes):
    for name in ("table1", "table2", "table3"):
        (table,) = outcomes[name].tables
        for block in table.blocks:
            assert set(table.rows(block)) >= {row.label for row in ONE_SUM_ROWS}
    (table,) = outcomes["table-sums"].tables
    consensus = ("PPGL-C, exact", "One sum, C", "Two sums, C", "Three sums, C")
    for scenario in (*SIZES, *SHARES, UNEQUAL, NESTED):
        assert table.rows(scenario.label) == consensus
    for scenario in UNRELATED:
        assert table.rows(scenario.label)[:4] == consensus
        assert table.rows(scenario.label)[4:] == ("PPGL-L, exact", "One sum, L", "One sum, L, chosen at home")


def test_held_out_numbers_are_never_better_on_average_than_chosen_ones(outcomes):
    for name in ("table1", "table2", "table3"):
        (table,) = outcomes[name].tables
        for number in table.numbers:
            if number.column == "FS held out":
                assert number.ours <= table.number(number.block, number.row, "FS").ours + 1e-12


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS if one.data in ("COIL-20", "ABIDE")])
def test_without_its_data_an_experiment_says_where_to_get_them(name, monkeypatch, tmp_path):
    monkeypatch.delenv("SILOGRAPH_DATA", raising=False)
    (experiment,) = choose_experiments((name,))
    with pytest.raises(DataError, match="Get it from"):
        experiment.run(Session(lab=Lab(kept=tmp_path), scale=SCALE))
    assert list(tmp_path.iterdir()) == []
