"""What a report says, for the tests: the data inside its page, and its answers in words."""

import json
import re

from silograph.analysis.overlap import overlaps
from silograph.report.layout import layout_of
from silograph.report.reading import reading


def data_of(page):
    """The data inside a page."""
    element = r'<script type="application/json" id="data"[^>]*>(.*?)</script>'
    found = re.search(element, page.read_text("utf-8"), re.DOTALL)
    return json.loads(found.group(1))


def words_of(run):
    """All answers of a run, as one text."""
    alike = overlaps([*run.graphs.values(), run.main])
    return " ".join(line for one in reading(run, layout_of(run).community, alike) for line in one.sentences)
