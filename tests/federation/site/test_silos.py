"""A site's silos: which of their numbers are in a sum that hides each, and which stay at home."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from silograph.data.blocks import fit_in_memory
from silograph.federation.refusals import Refused
from silograph.federation.site.data import look_at_data
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.silos import load_silos, shown_nodes
from silograph.federation.study_file import StudyFile, parse_study

NODES = ("a", "b", "c", "d", "e", "f")


def study(**top: str) -> StudyFile:
    lines = [f"{name} = {value}" for name, value in top.items()]
    text = "\n".join(["name = 's'", "nodes = ['a', 'b', 'c', 'd', 'e', 'f']", *lines, "[learn]", 'method = "oneshot"'])
    return parse_study(text.encode(), source="study")


def write(path: Path, values: np.ndarray, names=NODES) -> None:
    path.parent.mkdir(exist_ok=True)
    cells = [["" if np.isnan(x) else repr(float(x)) for x in row] for row in values]
    path.write_text("\n".join([",".join(names), *map(",".join, cells)]))


def site(data: str, **limits) -> SiteSettings:
    return SiteSettings(name="oslo", federation="f", server="s", data=Path(data), **limits)


def load(folder: Path, settings: SiteSettings, asked: StudyFile):
    return load_silos(settings, look_at_data(settings, folder), asked, NODES)


@given(arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(2, 7))), st.integers(1, 6))
def test_a_pair_of_shown_nodes_is_in_no_table_or_in_enough(has, least):
    shown = shown_nodes(has, least)
    for i in np.flatnonzero(shown):
        for j in np.flatnonzero(shown):
            assert (has[:, i] & has[:, j]).sum() == 0 or (has[:, i] & has[:, j]).sum() >= least
    if has.all() and len(has) >= least:
        assert shown.all()


def test_a_node_that_few_of_the_tables_have_is_in_no_sum_and_is_named(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(8):
        values = rng.normal(size=(30, 6))
        if number > 1:
            values[:, 5] = 0.0  # constant: missing in all but two
        if number == 7:
            values[:, 0] = np.nan  # missing in one
        write(tmp_path / "tables" / f"{number}.csv", values)
    own = load(tmp_path, site("tables"), study(missing_nodes="'allow'"))
    assert own.hidden == ("f",)
    counts = sum(silo.spread(np.ones(silo.pairs.size)) for silo in own.silos)
    assert set(counts) == {0.0, 7.0, 8.0}
    assert all(silo.cost.size == silo.pairs.size == silo.blocks.sums.shape[1] for silo in own.silos)
    assert fit_in_memory(own.silos[0].pairs)
    everyone = load(tmp_path, site("tables", min_tables=2), study(missing_nodes="'allow'"))
    assert everyone.hidden == ()
    for mine, theirs in zip(own.silos, everyone.silos, strict=True):  # what is shown is not changed
        there = mine.spread(np.ones(mine.pairs.size)) > 0
        np.testing.assert_array_equal(mine.spread(mine.cost), np.where(there, theirs.spread(theirs.cost), 0.0))


def test_copies_of_a_table_count_once(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(4):
        write(tmp_path / "tables" / f"{number}.csv", rng.normal(size=(30, 6)))
    (tmp_path / "tables" / "copy.csv").write_bytes((tmp_path / "tables" / "0.csv").read_bytes())
    with pytest.raises(Refused, match="has 4 different tables, the least is 5"):
        load(tmp_path, site("tables"), study())
    write(tmp_path / "tables" / "5.csv", rng.normal(size=(30, 6)))
    assert len(load(tmp_path, site("tables"), study()).silos) == 6


def test_samples_are_counted_at_the_pair_that_has_the_fewest(tmp_path):
    values = np.random.default_rng(0).normal(size=(60, 6))
    values[:30, 0] = values[20:50, 1] = np.nan  # both nodes in ten rows, the last ones
    write(tmp_path / "one.csv", values)
    with pytest.raises(Refused) as refused:
        load(tmp_path, site("one.csv"), study(missing="'pairs'"))
    assert (
        refused.value.code,
        refused.value.detail.endswith("has 10 samples for a pair of nodes, the least is 20"),
    ) == ("samples", True)
    with pytest.raises(Refused, match="has 10 samples, the least is 20"):
        load(tmp_path, site("one.csv"), study(missing="'rows'"))
    assert load(tmp_path, site("one.csv", min_samples=10), study(missing="'pairs'")).silos[0].n_samples == 60
