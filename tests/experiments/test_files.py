"""Tables as files that people and programs read, and what follows from a table's numbers."""

import csv
import json

import numpy as np
import pytest

from silograph.errors import OutputError
from silograph.experiments.files import FIELDS, format_number, format_printed, markdown, write_outcome
from silograph.experiments.outcome import Number, Outcome, Page, Table, deviations, mean_and_error

MINUS = "\N{MINUS SIGN}"
NUMBERS = (
    Number(block="N = 20", row="IGL", column="FS", ours=0.5123456789012345, error=0.01, paper=0.521),
    Number(block="N = 20", row="IGL", column="RE", ours=1 / 3),
    Number(block="N = 20", row="PPGL-L, “exact”", column="FS", ours=0.7, error=0.02, paper=0.561),
    Number(block="N = 50", row="IGL", column="FS", ours=0.6),
    Number(block="N = 50", row="IGL", column="edges", ours=114.25, error=2.5, paper=125.0),
)
TABLE = Table(name="small", title="A small table", numbers=NUMBERS, notes=("A note, with a comma.", "Another."))


@pytest.fixture
def written(tmp_path):
    paths = write_outcome(Outcome(tables=(TABLE,)), tmp_path / "deep" / "folder")
    assert [path.name for path in paths] == ["small.md", "small.csv", "small.json"]
    return {path.suffix: path for path in paths}


def test_csv_gives_every_number_back_to_the_last_digit(written):
    with written[".csv"].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == FIELDS
    for row, number in zip(rows, NUMBERS, strict=True):
        assert (row["block"], row["row"], row["column"]) == (number.block, number.row, number.column)
        assert float(row["ours"]) == number.ours
        for name, value in (
            ("standard error", number.error),
            ("paper", number.paper),
            ("difference", number.difference),
        ):
            assert row[name] == "" if value is None else float(row[name]) == value


def test_json_gives_every_number_back_and_the_notes(written):
    record = json.loads(written[".json"].read_text(encoding="utf-8"))
    assert record["title"] == TABLE.title
    assert record["notes"] == list(TABLE.notes)
    for found, number in zip(record["numbers"], NUMBERS, strict=True):
        assert list(found) == list(FIELDS)
        assert found["ours"] == number.ours
        assert (found["standard error"], found["paper"]) == (number.error, number.paper)
        assert found["difference"] == number.difference


def test_json_is_json_even_where_a_number_is_none(tmp_path):
    """NaN is Python's own word: others' readers refuse a file that has it."""
    table = Table(name="odd", title="", numbers=(Number(block="", row="a", column="b", ours=float("nan")),))
    write_outcome(Outcome(tables=(table,)), tmp_path)

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    json.loads((tmp_path / "odd.json").read_text(encoding="utf-8"), parse_constant=refuse)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_markdown_has_a_table_per_block_with_gaps_where_there_is_no_number(written):
    lines = written[".md"].read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# A small table"
    first, second = (lines.index(f"**{block}**") for block in ("N = 20", "N = 50"))
    assert cells(lines[first + 2]) == ["", "FS", "paper", "difference", "RE"]
    assert cells(lines[first + 4]) == ["IGL", "0.512 ± 0.010", "0.521", f"{MINUS}0.009", "0.333"]
    assert cells(lines[first + 5]) == ["PPGL-L, “exact”", "0.700 ± 0.020", "0.561", "+0.139", ""]
    row = dict(zip(cells(lines[second + 2]), cells(lines[second + 4]), strict=True))
    assert row["FS"] == "0.600"
    assert row["edges"] == "114.2 ± 2.5"
    widths = {len(cells(line)) for line in lines[first + 2 : first + 6]}
    assert widths == {5}
    assert "A note, with a comma." in lines
    assert "Another." in lines


def test_a_block_without_a_name_has_no_heading():
    table = Table(name="", title="T", numbers=(Number(block="", row="a", column="b", ours=1.0),))
    assert "**" not in markdown(table)


def test_numbers_are_said_with_their_error_and_a_true_minus():
    number = Number(block="", row="", column="", ours=-0.12345, error=0.01, paper=0.5)
    assert format_number(number, 3) == f"{MINUS}0.123 ± 0.010"
    assert format_printed(number, 3) == ("0.500", f"{MINUS}0.623")
    assert format_number(None, 3) == ""
    assert format_printed(Number(block="", row="", column="", ours=0.1), 3) == ("", "")


def test_means_have_the_standard_error_of_independent_values(rng):
    values = rng.normal(size=12)
    mean, error = mean_and_error(values)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(np.sqrt(((values - mean) ** 2).sum() / 11 / 12))
    assert mean_and_error(values[:1]) == (values[0], None)


def test_deviations_are_those_computed_by_hand():
    def number(row, ours, paper, column="FS"):
        return Number(block="", row=row, column=column, ours=ours, paper=paper)

    tables = [
        Table(name="", title="", numbers=(number("IGL", 0.5, 0.4), number("IGL", 9.0, 1.0, column="RE"))),
        Table(name="", title="", numbers=(number("IGL", 0.5, 0.8), number("PPGL-L, exact", 0.7, 0.5))),
        Table(name="", title="", numbers=(number("IGL, own β", 0.7, None), number("Ditto", 0.1, 0.3))),
    ]
    found = deviations(tables, ["FS", "RE"])
    expected = {
        "IGL": (0.2, -0.1, 0.3),
        "Ditto": (0.2, -0.2, 0.2),
        "PPGL-L, exact": (0.2, 0.2, 0.2),
        "all, by the paper's iterations": (0.2, -0.4 / 3, 0.3),
        "all, exact": (0.2, 0.2, 0.2),
    }
    assert set(found.rows("FS")) == set(expected)
    for row, values in expected.items():
        columns = ("mean absolute difference", "mean difference", "largest")
        ours = [found.number("FS", row, column).ours for column in columns]
        assert ours == pytest.approx(values)
    assert found.number("RE", "IGL", "largest").ours == 8.0
    assert found.number("RE", "all, exact", "largest") is None


def test_blocks_rows_and_columns_are_in_the_order_given():
    assert TABLE.blocks == ("N = 20", "N = 50")
    assert TABLE.rows("N = 20") == ("IGL", "PPGL-L, “exact”")
    assert TABLE.columns("N = 50") == ("FS", "edges")
    assert TABLE.number("N = 50", "PPGL-C", "FS") is None


def test_pages_are_written_under_their_title(tmp_path):
    (path,) = write_outcome(Outcome(pages=(Page(name="findings", title="What held", text="All.\n"),)), tmp_path)
    assert path.read_text(encoding="utf-8") == "# What held\n\nAll.\n"


def test_a_second_writing_replaces_the_first_and_leaves_nothing_beside_it(tmp_path):
    for _ in range(2):
        write_outcome(Outcome(tables=(TABLE,)), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.csv", "small.json", "small.md"]


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file"):
        write_outcome(Outcome(tables=(TABLE,)), tmp_path / "file")
