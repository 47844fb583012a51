"""The ledger of answered versions: which rows came and went, and which sums of rows a coordinator could make."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import OutputError, ParameterError
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData, look_at_data, version_of
from silograph.federation.site.ledger import Ledger, Reading, fewest_told_apart
from silograph.federation.site.settings import SiteSettings
from testing.consortium import NODES

STUDY, RUN = "ab" * 32, "run-00000.1"


def look(folder: Path, rows: np.ndarray, names=NODES, form: str = "%.17g", **how) -> SiteData:
    """The site's table, once these rows are written into it."""
    np.savetxt(folder / "oslo.csv", rows, delimiter=",", header=",".join(names), comments="", fmt=form)
    settings = SiteSettings(name="oslo", federation="f", server="s", data=Path("oslo.csv"), **how)
    return look_at_data(settings, folder)


def answer(folder: Path, rows: np.ndarray, **options) -> SiteData:
    """A version that is answered for."""
    table = look(folder, rows, **options)
    Ledger(folder).rows(table)
    Ledger(folder).note(table.version, study=STUDY, run=RUN)
    return table


def asking(least: int) -> SiteSettings:
    return SiteSettings(name="oslo", federation="f", server="s", data=Path("oslo.csv"), min_new_samples=least)


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(200, len(NODES)))


def compared(folder: Path, rows: np.ndarray, **options):
    return Ledger(folder).compare(look(folder, rows, **options))


# --- what a new version shows -----------------------------------------------------------------------------------------


def test_rows_that_came_and_went_are_counted(tmp_path, rows):
    answer(tmp_path, rows[:100])
    (change,) = compared(tmp_path, rows[3:140]).changes
    assert (change.added, change.removed, change.earlier.size) == (40, 3, 100)


@pytest.mark.parametrize(
    ("now", "fewest"),
    [
        (range(100), None),  # the same rows in the same order: another file, nothing new
        ([*range(99, -1, -1)], None),  # in another order
        (range(101), 1),
        (range(99), 1),
        (range(119), 19),
        (range(120), 20),
        ([*range(1, 130)], 1),  # thirty new ones do not hide the one that went
        (range(30, 130), 30),
        (range(100, 150), 50),  # all others
        ([0, *range(100)], 1),  # a row doubled is a row more
    ],
)
def test_the_fewest_rows_that_become_known_by_themselves(tmp_path, rows, now, fewest):
    answer(tmp_path, rows[:100])
    assert compared(tmp_path, rows[list(now)], form="%.15e").fewest == fewest


@pytest.mark.parametrize(("offset", "size"), [(1e8, 1.0), (101325.0, 1e-4), (0.5, 1e-9)])
def test_a_row_exchanged_shows_though_signals_ride_on_an_offset(tmp_path, rows, offset, size):
    answer(tmp_path, offset + size * rows[:100])
    changed = offset + size * rows[:100]
    changed[7] = offset + size * rows[150]
    assert compared(tmp_path, changed).fewest == 1


def test_a_lost_key_is_not_replaced_in_silence(tmp_path, rows):
    answer(tmp_path, rows[:100])
    (tmp_path / "ledger" / "key").unlink()
    with pytest.raises(ParameterError, match="key: is gone"):
        compared(tmp_path, rows[:101])


def test_a_first_version_and_one_answered_before_show_nothing_new(tmp_path, rows):
    assert compared(tmp_path, rows[:100]).objection(asking(20)) is None
    answer(tmp_path, rows[:100])
    answer(tmp_path, rows[:101])  # despite the difference
    assert compared(tmp_path, rows[:100]).objection(asking(20)) is None
    assert compared(tmp_path, rows[:101]).objection(asking(20)) is None
    assert compared(tmp_path, rows[:140]).objection(asking(20)) is None  # what was shown is not shown anew


def test_versions_that_differ_by_many_rows_each_may_together_show_one():
    """A, A and B, A and C, then A, B, C and one more: the last with the first, less the others, is that one."""
    a, b, c, one = np.split(np.arange(1, 242, 2, dtype=np.uint64), [60, 90, 120])  # odd: whole
    earlier = [np.concatenate(parts) for parts in ([a], [a, b], [a, c])]
    new = np.concatenate([a, b, c, one])
    assert min(np.setxor1d(new, old).size for old in earlier) == 31
    assert fewest_told_apart(earlier, new) == 1
    assert fewest_told_apart(earlier, new[:-1]) is None


@given(st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=1, max_size=12), st.sets(st.integers(0, 30)))
def test_groups_of_many_versions_are_those_of_the_definition(earlier, new):
    groups = defaultdict(set)
    for row in set.union(*earlier) | new:
        groups[tuple(row in one for one in earlier)].add(row)
    parts = [part for group in groups.values() for part in (group & new, group - new) if part not in (set(), group)]
    parts.append(groups.get((False,) * len(earlier), set()))
    expected = min((sum(row % 2 for row in part) for part in parts if part), default=None)  # odd ones are whole
    arrays = [np.array(sorted(one), dtype=np.uint64) for one in (*earlier, new)]
    assert fewest_told_apart(arrays[:-1], arrays[-1]) == expected


def test_rows_with_gaps_are_noticed_and_hide_nobody(tmp_path, rows):
    answer(tmp_path, rows[:100])
    gappy = rows[:130].copy()
    gappy[100:119, 0] = np.nan
    assert compared(tmp_path, gappy).fewest == 11  # 30 came, 19 of them with a gap
    gappy[100:, 0] = np.nan
    found = compared(tmp_path, gappy)
    assert found.fewest == 0
    assert "show rows with gaps or missing nodes by themselves" in found.objection(asking(1))


def test_rows_that_came_do_not_hide_one_that_went():
    """Why both are counted: of 100 nodes, the one negative direction of the difference is nearly the row that went."""
    rng = np.random.default_rng(0)
    came, went = rng.normal(size=(20, 100)), rng.normal(size=100)
    values, vectors = np.linalg.eigh(came.T @ came - np.outer(went, went))
    assert values[0] < 0 <= values[1] + 1e-9
    assert abs(vectors[:, 0] @ went) / np.linalg.norm(went) > 0.85


def test_the_same_rows_in_other_units_or_digits_are_not_taken_for_other_rows_without_a_word(tmp_path, rows):
    answer(tmp_path, rows[:100])
    for other, form in ((1000 * rows[:101], "%.17g"), (rows[:101], "%.4f")):
        comparison = compared(tmp_path, other, form=form)
        assert comparison.changes[0].added == 101
        assert "a row is as in version" in (comparison.objection(asking(20)) or "")
    assert compared(tmp_path, 1000 * rows[:120]).objection(asking(20)) is None
    assert compared(tmp_path, 1000 * rows[:101]).objection(asking(0)) is None


def test_other_columns_are_not_taken_for_other_rows_without_a_word(tmp_path, rows):
    answer(tmp_path, rows[:100])
    assert "columns" in (compared(tmp_path, rows[:101, :-1], names=NODES[:-1]).objection(asking(20)) or "")
    assert "columns" in (compared(tmp_path, rows[:101], drop=(NODES[0],)).objection(asking(20)) or "")


def test_order_of_columns_digits_beyond_float32_and_the_sign_of_zero_make_no_other_row(tmp_path, rows):
    rows[0, 0] = 0.0
    answer(tmp_path, rows[:100])
    rows[0, 0] = -0.0
    order = np.random.default_rng(1).permutation(len(NODES))
    comparison = compared(tmp_path, rows[:100, order], names=[NODES[k] for k in order], form="%.11g")
    assert (comparison.changes[0].added, comparison.changes[0].removed, comparison.fewest) == (0, 0, None)


def test_ranks_are_another_version_of_the_table_and_hide_no_row_that_came(tmp_path, rows):
    table, ranks = answer(tmp_path, rows[:100]), Reading(ranks=True)
    found = Ledger(tmp_path).compare(table, ranks)
    assert (found.changes[0].earlier.version, found.changes[0].added, found.fewest) == (table.version, 0, None)
    Ledger(tmp_path).note(ranks.version(table.version), study=STUDY, run=RUN)
    assert {one.version for one in Ledger(tmp_path).answered()} == {table.version, f"{table.version}-ranks"}
    for reading in (Reading(), ranks):  # the others' ranks hardly change, and all of them are in both sums
        assert Ledger(tmp_path).compare(look(tmp_path, rows[:101]), reading).fewest == 1
    assert len({Reading(rows=a, some=b, ranks=c).version("v") for a in (0, 1) for b in (0, 1) for c in (0, 1)}) == 8


# --- what is written down ---------------------------------------------------------------------------------------------


def test_what_was_answered_is_told_by_version_study_run_and_round_in_any_later_process(tmp_path, rows):
    table = answer(tmp_path, rows)
    Ledger(tmp_path).note(table.version, study=STUDY, run=RUN)
    Ledger(tmp_path).note(table.version, study="cd" * 32, run="run-00001.1")
    (found,) = Ledger(tmp_path).answered()
    assert (found.version, found.size, found.first < found.last) == (table.version, 200, True)
    assert found.studies == {STUDY: {RUN: 2}, "cd" * 32: {"run-00001.1": 1}}


def test_a_version_that_was_only_looked_at_was_not_answered_for(tmp_path, rows):
    compared(tmp_path, rows[:100])
    assert Ledger(tmp_path).answered() == []
    assert compared(tmp_path, rows[:101]).changes == ()


def test_hashes_tell_nothing_without_the_sites_own_key(tmp_path, rows):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        answer(folder, rows)
    keys = [(folder / "ledger" / "key").read_bytes() for folder in folders]
    assert len(keys[0]) == 32
    assert keys[0] != keys[1]
    assert (folders[0] / "ledger" / "key").stat().st_mode & 0o777 == 0o600
    found = [Ledger(folder).rows(look(folder, rows)) for folder in folders]
    assert np.intersect1d(*found).size == 0


def test_how_a_table_is_read_is_part_of_its_version():
    names = {"name": "oslo", "federation": "f", "server": "s", "data": Path("x.npz")}
    ways = [{}, {"drop": ("a",)}, {"drop": ("a", "b")}, {"key": "X"}, {"header": True}, {"header": False}]
    versions = {version_of(SiteSettings(**names, **way), "0" * 64) for way in ways}
    assert len(versions) == len(ways)
    assert version_of(SiteSettings(**names, drop=("b", "a")), "0" * 64) in versions  # in any order
    assert version_of(SiteSettings(**names), "1" * 64) not in versions


def test_a_table_changed_while_it_is_read_is_of_no_version(tmp_path, rows):
    table = look(tmp_path, rows[:100])
    look(tmp_path, rows[:101])
    with pytest.raises(Refused, match="was changed while it was read"):
        Ledger(tmp_path).rows(table)
    assert not list((tmp_path / "ledger").glob("*.rows"))


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"size": 3}', b'{"x": 1}'])
def test_a_damaged_ledger_lets_nothing_pass(tmp_path, rows, damage):
    table = answer(tmp_path, rows[:100])
    path = tmp_path / "ledger" / f"{table.version}.json"
    path.write_bytes(damage)
    with pytest.raises(ParameterError, match=r"is damaged .*Put back a copy"):
        compared(tmp_path, rows[:101])
    path.write_text(json.dumps({"size": 1, "first": "", "last": "", "studies": {}}))
    (tmp_path / "ledger" / f"{table.version}.rows").unlink()
    with pytest.raises(ParameterError, match=r"\.rows: cannot be read"):
        compared(tmp_path, rows[:101])


def test_what_cannot_be_written_down_is_told(tmp_path, rows):
    table = look(tmp_path, rows)
    Ledger(tmp_path).rows(table)
    (tmp_path / "ledger" / f"{table.version}.json.new").mkdir()  # where the file is written first
    with pytest.raises(OutputError, match="cannot be written"):
        Ledger(tmp_path).note(table.version, study=STUDY, run=RUN)
