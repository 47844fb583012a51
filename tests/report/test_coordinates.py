"""Coordinates are read from a table, and what is wrong with one is said."""

import pytest

from silograph.errors import SignalError
from silograph.report.coordinates import read_coordinates


def test_coordinates_come_in_the_order_of_the_nodes(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("name,x,y,z\nb,4,5,6\nunused,0,0,0\na,1,2,3\n")
    assert read_coordinates(path, ["a", "b"]).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,x\na,1\n", "columns name, x, y"),
        ("name,x,y\na,1,2\n", "1 have none"),
        ("name,x,y\na,1,2\nb,one,2\n", "row 3, column 'x'"),
        ("name,x,y\na,1,2\na,1,2\nb,1,2\n", "row 3: 'a' has a row"),
        ("name,x,y\na,1,2\nb,nan,2\n", "finite"),
    ],
)
def test_what_is_wrong_with_coordinates_is_said(tmp_path, text, says):
    path = tmp_path / "places.csv"
    path.write_text(text)
    with pytest.raises(SignalError, match=says):
        read_coordinates(path, ["a", "b"])
