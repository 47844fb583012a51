"""From a run, or a model, and a table of people to a comparison; and everything that can be wrong with the table."""

import unicodedata
import warnings
from dataclasses import replace

import numpy as np
import pytest

from silograph import ConsensusGraph, compare_groups
from silograph.errors import GraphError, ParameterError, SilosError
from silograph.graph.graph import Graph
from silograph.runs.people import people_of, read_people
from silograph.runs.reader import RunData


class Model:
    """As much of a fitted model as a comparison needs."""

    def __init__(self, silos, lacking=()):
        rng = np.random.default_rng(5)
        names, self.graphs_ = [f"n{k}" for k in range(6)], {}
        for silo in silos:
            half = np.triu(rng.random((6, 6)), 1)
            graph = Graph.from_adjacency(half + half.T, names)
            if silo in lacking:
                graph = Graph.from_adjacency(graph.adjacency()[:5, :5], names[:5])
            self.graphs_[silo] = graph
        self.consensus_graph_ = Graph.from_adjacency(half + half.T, names)
        self.n_samples_seen_ = [80] * len(silos)


SILOS = [f"oslo/p{k}" for k in range(4)] + [f"lima/p{k}" for k in range(4, 8)]
TABLE = """who,dx,age,place
oslo/p0,patient,30,x
oslo/p1,patient,41,y
p2,control,33,x
p3,control,50,y
p4,patient,27,x
p5,patient,36,y
p6,control,61,x
p7,control,44,y
"""


@pytest.fixture
def model():
    return Model(SILOS)


@pytest.fixture
def table(tmp_path):
    def write(text=TABLE, name="people.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_a_table_and_a_dict_say_the_same(model, table):
    told = compare_groups(model, table(), column="dx", permutations=99)
    known = {silo: "control" if silo[-1] in "2367" else "patient" for silo in SILOS}
    same = compare_groups(model, known, permutations=99)
    assert told.groups == ("control", "patient")
    assert told.design.counts == (4, 4)
    assert np.array_equal(told.edges.p_family, same.edges.p_family)


def test_groups_between_which_can_be_chosen_and_turned(model, table):
    one = compare_groups(model, table(), column="dx", between=("patient", "control"), permutations=99)
    other = compare_groups(model, table(), column="dx", permutations=99)
    assert one.edges.difference == pytest.approx(-other.edges.difference)


def test_of_three_groups_two_are_compared_and_the_third_is_left_out(model, table):
    text = TABLE.replace("p7,control", "p7,unknown").replace("oslo/p0,patient", "oslo/p0,")
    with pytest.raises(SilosError, match=r"1 have none \('oslo/p0'\)"):
        compare_groups(model, table(text), column="dx")
    with pytest.raises(SilosError, match=r"expected two groups, got 3 \('control', 'patient', 'unknown'\)"):
        compare_groups(model, table(text.replace("p0,,", "p0,patient,")), column="dx")
    told = compare_groups(model, table(text), column="dx", between=("control", "patient"), permutations=99)
    assert told.design.counts == (3, 3)
    assert "oslo/p0" not in told.pairs.silos
    with pytest.raises(ParameterError, match="expected two groups of column 'dx'"):
        compare_groups(model, table(text), column="dx", between=("control", "other"))


def test_a_covariate_called_site_restricts_relabellings_and_may_be_the_silos_folder(model, table):
    told = compare_groups(model, table(), column="dx", covariates=["age", "site"], permutations=99)
    assert (told.sites, told.covariates) == ("site", ("age",))
    assert told.design.site.tolist() == [1] * 4 + [0] * 4
    other = compare_groups(model, table(), column="dx", sites="place", permutations=99)
    assert other.design.site.tolist() == [0, 1] * 4
    assert "within place" in other.says


def test_nodes_that_a_silo_lacks_are_compared_among_the_others(table):
    model = Model([f"s{k}" for k in range(12)], lacking=["s3"])
    told = compare_groups(model, {f"s{k}": "ab"[k % 2] for k in range(12)}, permutations=99)
    assert np.isfinite(told.edges.p).all()
    assert "5 pairs are lacking in some silos" in told.says


def test_names_may_have_lost_their_zeros_and_tables_have_semicolons_or_tabs(table):
    model = Model(["nyu/0050952", "nyu/0050953", "nyu/0050954", "nyu/0050955"])
    text = "id;dx\n50952;a\n50953;a\n50954;b\n50955;b\n"
    assert compare_groups(model, table(text), permutations=99).design.counts == (2, 2)
    tabs = table(text.replace(";", "\t"), "people.tsv")
    assert compare_groups(model, tabs, permutations=99).design.is_first.tolist() == [True, True, False, False]


def test_rows_of_other_people_are_an_error_unless_ignored(model, table):
    text = TABLE + "p9,control,50,x\n"
    with pytest.raises(SilosError, match="no silo that is called 'p9'"):
        compare_groups(model, table(text), column="dx")
    assert compare_groups(model, table(text), column="dx", others="ignore", permutations=99).design.counts == (4, 4)


def test_each_silo_has_one_row(model, table):
    with pytest.raises(SilosError, match=r"1 of 8 have none \('lima/p7'\)"):
        compare_groups(model, table(TABLE.replace("p7,control,44,y\n", "")), column="dx")
    with pytest.raises(SilosError, match="got 'oslo/p1' and 'p1' for 'oslo/p1'"):
        compare_groups(model, table(TABLE + "p1,patient,41,y\n"), column="dx")


def test_a_name_that_two_sites_have_must_be_whole(table):
    model = Model(["a/p1", "b/p1", "a/p2", "b/p2"])
    with pytest.raises(SilosError, match="no silo that is called 'p1'"):
        compare_groups(model, table("who,dx\np1,x\np2,y\n"))


def test_a_name_of_another_site_is_not_taken_for_a_silo(model, table):
    with pytest.raises(SilosError, match="no silo that is called 'rome/p7'"):
        compare_groups(model, table(TABLE.replace("p7,", "rome/p7,")), column="dx")
    with pytest.raises(SilosError, match=r"1 of 8 have none \('lima/p7'\)"):
        compare_groups(model, table(TABLE.replace("p7,", "rome/p7,")), column="dx", others="ignore")


def test_silos_without_a_site_may_be_called_by_one(table):
    told = compare_groups(Model(["p0", "p01", "p2", "p3"]), table("who,dx\noslo/p0,x\np01,x\noslo/p2,y\np3,y\n"),
                          permutations=99)  # fmt: skip
    assert told.design.is_first.tolist() == [True, True, False, False]


def test_a_column_that_numbers_the_rows_is_not_taken_for_names(table):
    model = Model([f"s/{k}" for k in range(4)])
    text = ",silo,dx\n0,3,x\n1,2,x\n2,1,y\n3,0,y\n"
    with pytest.raises(ParameterError, match=r"the first column of people.csv has no name.*\('silo', 'dx'\)"):
        compare_groups(model, table(text), column="dx")
    told = compare_groups(model, table(text), column="dx", name="silo", permutations=99)
    assert told.design.is_first.tolist() == [False, False, True, True]


def test_rows_are_a_covariate_that_needs_no_column_unless_there_is_one(model, table):
    model.n_samples_seen_ = [60, 61, 200, 190, 90, 70, 195, 180]
    told = compare_groups(model, table(), column="dx", covariates=["rows"], permutations=99)
    by_hand = dict(zip(SILOS, model.n_samples_seen_, strict=True))
    text = "\n".join(
        line + ("," + ("rows" if not k else str(by_hand[SILOS[k - 1]]))) for k, line in enumerate(TABLE.split())
    )
    same = compare_groups(model, table(text), column="dx", covariates=["rows"], permutations=99)
    assert np.array_equal(told.edges.p_family, same.edges.p_family)
    assert "rows on average" not in told.says
    assert "rows on average" in compare_groups(model, table(), column="dx", permutations=99).says
    model.n_samples_seen_[2] = None
    with pytest.raises(ParameterError, match="covariates: expected a column"):
        compare_groups(model, table(), column="dx", covariates=["rows"])


def test_tables_as_spreadsheets_write_them_are_read(table, tmp_path):
    model = Model([f"s{k}" for k in range(4)])
    quoted = '\ufeff"silo"; "dx";;\r\n"s0"; "a";;\r\n"s1"; "a";;\r\ns2;b;;\r\ns3;b;;\r\n;;;\r\n'
    assert compare_groups(model, table(quoted), permutations=99).groups == ("a", "b")
    (tmp_path / "latin.csv").write_bytes("silo;dx\ns0;kränk\n".encode("cp1252"))
    with pytest.raises(SilosError, match="expected a table of people in UTF-8"):
        read_people(tmp_path / "latin.csv")
    with pytest.raises(SilosError, match=r"people.xlsx: expected CSV or TSV, got a spreadsheet"):
        read_people(table("", "people.xlsx"))
    with pytest.raises(SilosError, match="got nothing"):
        read_people(table(""))


def test_a_row_that_cannot_be_read_is_named_where_it_begins(table):
    opened = "who,dx\np0,a\n" + '"p1,a\np2,b\np3,b\n'
    with pytest.raises(SilosError, match=r"row 3: expected 2 cells, got 1. It goes on to row 5: is a quote open\?"):
        read_people(table(opened))
    with pytest.raises(SilosError, match=r"row 3: cannot be read .*where a quote may be open"):
        read_people(table(opened + "x" * 200_000))
    with pytest.raises(
        SilosError, match=r"people.csv, rows 2 and 4: expected one row for each silo, got 'p0' and 'p0'"
    ):
        compare_groups(Model(["p0", "p1"]), table("who,dx\np0,a\np1,b\np0,a\n"))
    assert read_people(table('who,dx\np0,"a\nb"\n\np1,b\n')).lines == (2, 5)


def test_excels_line_of_the_separator_is_none_of_the_table(table):
    people = read_people(table("\ufeffsep=;\r\nsilo;dx\r\ns0;a\r\ns1;b,c\r\n"))
    assert (people.columns, [row["dx"] for row in people.rows], people.lines) == (["dx"], ["a", "b,c"], (3, 4))


@pytest.mark.parametrize(
    ("name", "text", "cells"),
    [
        ("people.tsv", "silo,dx\ns0,a\n", "tabs are"),
        ("people.csv", '"silo,dx"\n"s0,a"\n', "commas, semicolons or tabs"),
    ],
)
def test_a_table_of_one_column_is_told_what_lies_between_cells(table, name, text, cells):
    with pytest.raises(SilosError, match=f"got one column, 'silo,dx'. Between cells {cells}"):
        read_people(table(text, name))


def test_names_that_are_nearly_those_of_silos_are_told_so(table):
    model = Model(["oslo/p0", "oslo/p1", "lima/p1", "lima/p2"])
    text = "who,dx\noslo/p0,a\noslo/p1,a\nlima/p1,b\np2,b\n"
    assert compare_groups(model, table(text), permutations=99).design.counts == (2, 2)
    for others in ("error", "ignore"):
        with pytest.raises(SilosError, match="'Lima/P1' and 'lima/p1' differ in upper and lower case"):
            compare_groups(model, table(text.replace("lima/p1", "Lima/P1")), others=others)
    with pytest.raises(SilosError, match="'p1' may be any of 'oslo/p1', 'lima/p1': write the whole name"):
        compare_groups(model, table(text.replace("lima/p1", "p1")))


def test_accents_are_one_spelling_in_names_of_files_and_in_tables(table):
    silos = [
        unicodedata.normalize("NFD", name)
        for name in ("jos\u00e9/p1", "jos\u00e9/p2", "b\u00f8/p3", "b\u00f8/p\u00e94")
    ]
    told = compare_groups(Model(silos), table("who,dx\njos\u00e9/p1,a\np2,a\np3,b\np\u00e94,b\n"), permutations=99)
    assert told.design.is_first.tolist() == [True, True, False, False]


def test_words_that_are_taken_for_gaps_are_told(model, table):
    with pytest.raises(SilosError, match=r"4 have none .*A cell that says 'none' counts as empty"):
        compare_groups(model, table(TABLE.replace("control", "none")), column="dx")
    with pytest.raises(ParameterError, match=r"expected two groups of column 'dx' .*'none' counts as empty"):
        compare_groups(model, table(TABLE.replace("control", "none")), column="dx", between=("none", "patient"))
    with pytest.raises(SilosError, match=r"Covariate 'place': .*A cell that says 'NA' counts as empty.* \(between\)"):
        compare_groups(model, table(TABLE.replace(",x", ",NA")), column="dx", covariates=["place"])
    with pytest.raises(SilosError, match=r"Sites 'place': .*4 have none .*'NA' counts as empty"):
        compare_groups(model, table(TABLE.replace(",x", ",NA")), column="dx", sites="place")
    with pytest.raises(SilosError, match="'Control', 'control' differ in upper and lower case"):
        compare_groups(model, table(TABLE.replace("p7,control", "p7,Control")), column="dx")


def test_groups_that_are_numbers_are_called_by_their_column(model, table):
    text = TABLE.replace("control", "2").replace("patient", "1")
    told = compare_groups(model, table(text), column="dx", permutations=99)
    assert (told.groups, told.shown) == (("1", "2"), ("dx 1", "dx 2"))
    assert "between dx 1 (n = 4) and dx 2 (n = 4)" in told.says
    assert "(dx 1 − dx 2 = " in told.says


def test_what_is_left_out_and_what_is_adjusted_is_said(model, table):
    text = TABLE.replace("p7,control", "p7,unknown")
    told = compare_groups(model, table(text), column="dx", between=("control", "patient"), covariates=["age"])
    assert "Left out, as of other groups or of none: 1 of the run's silos ('lima/p7')." in told.says
    assert "Differences and effects are adjusted for age; means of groups are not." in told.says
    plain = compare_groups(model, table(), column="dx", permutations=99)
    assert "Left out" not in plain.says
    assert "adjusted for" not in plain.says


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e306])
def test_a_covariate_in_any_unit_is_the_same_covariate(model, table, size):
    def told(unit):
        ages = {number: repr(int(number) * unit) for number in ("30", "41", "33", "50", "27", "36", "61", "44")}
        text = TABLE
        for number, age in ages.items():
            text = text.replace(f",{number},", f",{age},")
        return compare_groups(model, table(text), column="dx", covariates=["age"], permutations=99).edges

    assert told(size).statistic == pytest.approx(told(1.0).statistic, rel=1e-6)


def test_errors_of_the_design_name_the_table_and_what_tells_the_group(model, table):
    with pytest.raises(SilosError, match=r"people.csv: Covariate 'age', silo 'oslo/p0': expected a number"):
        compare_groups(model, table(TABLE.replace(",30,", ",?,")), column="dx", covariates=["age"])
    with pytest.raises(SilosError, match=r"people.csv: .*'control' follows from covariate 'dx'"):
        compare_groups(model, table(), column="dx", covariates=["age", "dx"])
    with pytest.raises(SilosError, match=r"'control' follows from the sites, .* Leave the sites out"):
        compare_groups(model, table(), column="dx", sites="dx")
    four = Model(["p0", "p1", "p2", "p3"])
    with pytest.raises(SilosError, match="Covariate 'age': is too much for 4 silos"):
        compare_groups(four, table("who,dx,age\np0,a,1\np1,a,3\np2,b,2\np3,b,5\n"), column="dx", covariates=["age"])


def test_a_data_frame_is_told_how_it_may_come(model):
    with pytest.raises(ParameterError, match=r"got list. Of a data frame, give the dict of its rows"):
        compare_groups(model, [("oslo/p0", "patient")])


def test_the_column_is_found_only_where_there_is_one(model, table):
    with pytest.raises(ParameterError, match="got 'dx', 'age', 'place'"):
        compare_groups(model, table())
    with pytest.raises(ParameterError, match=r"covariates: expected a column of people.csv .*, got 'sex'"):
        compare_groups(model, table(), column="dx", covariates=["sex"])
    with pytest.raises(ParameterError, match="name: expected a column"):
        compare_groups(model, table(), column="dx", name="nobody")
    with pytest.raises(ParameterError, match="permutations: expected 10000000 at most, got 1000000000"):
        compare_groups(model, table(), column="dx", permutations=1_000_000_000)
    with pytest.raises(ParameterError, match="permutations: expected a whole number ≥ 19"):
        compare_groups(model, table(), column="dx", permutations=5)


def test_one_group_is_nothing_to_compare(model, table):
    with pytest.raises(SilosError, match="expected two groups, got 1"):
        compare_groups(model, table(TABLE.replace("control", "patient")), column="dx")


def test_tables_that_are_none_are_told_so(table, tmp_path):
    with pytest.raises(SilosError, match="cannot be read"):
        read_people(tmp_path / "nothing.csv")
    with pytest.raises(SilosError, match="row 2: expected 2 cells"):
        read_people(table("who,dx\np1\n"))
    with pytest.raises(SilosError, match="different names"):
        read_people(table("who,dx,dx\np1,a,b\n"))
    with pytest.raises(SilosError, match="one row for each silo, got none"):
        read_people(table("who,dx\n"))
    with pytest.raises(SilosError, match="row 2: expected a name in column 'who', got ''"):
        read_people(table("who,dx\n,a\n"))
    with pytest.raises(SilosError, match="the same columns"):
        people_of({"p1": {"dx": "a"}, "p2": {"age": 3}})


def test_a_model_must_be_fitted_and_a_run_have_its_silos_graphs(model, table):
    with pytest.raises(ParameterError, match="Fit it first"):
        compare_groups(ConsensusGraph(), table())


def test_a_fitted_consensus_graph_is_compared_as_it_is(rng):
    base = rng.normal(size=(6, 6))
    signals = {f"s{k}": rng.normal(size=(60, 6)) @ base for k in range(6)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusGraph(degree=2, coupling=0.5).fit(signals)
    told = compare_groups(model, {silo: "ab"[number % 2] for number, silo in enumerate(signals)}, permutations=99)
    assert told.relabellings.possible == 20
    assert told.says


def test_runs_without_graphs_of_silos_are_refused(tmp_path):
    from silograph import learn_files

    rng = np.random.default_rng(0)
    np.save(tmp_path / "one.npy", rng.normal(size=(40, 5)))
    np.save(tmp_path / "two.npy", rng.normal(size=(40, 5)))
    with pytest.raises(GraphError, match="got one over one table"):
        compare_groups(learn_files(tmp_path / "one.npy"), {"one": "a"})
    run = learn_files([tmp_path / "one.npy", tmp_path / "two.npy"], degree=2, coupling=0.5)
    newcomer: RunData = replace(run, record=replace(run.record, silos=run.record.silos[:1]))
    with pytest.raises(GraphError, match="got one over 'one' alone, as a newcomer's is"):
        compare_groups(newcomer, {"one": "a"})
    away: RunData = replace(run, graphs={"one": run.graphs["one"]})
    with pytest.raises(GraphError, match=r"1 are not in this folder \('two'\)"):
        compare_groups(away, {"one": "a", "two": "b"})
