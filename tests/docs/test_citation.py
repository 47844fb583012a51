"""The file by which people cite silograph names the version that there is."""

import re
from pathlib import Path

import silograph

TEXT = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    assert re.search(r"^cff-version: 1\.2\.0$", TEXT, re.MULTILINE)
    assert re.search(rf"^version: {re.escape(silograph.__version__)}$", TEXT, re.MULTILINE)
