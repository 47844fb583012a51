"""`silograph site log`, as people read it."""

import math

import pytest
from rich.console import Console

from silograph.cli.site.log import log_table
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.openings import NO_ENTRY, Line, Opening, entry_of
from silograph.federation.site.spending import cost_of
from silograph.privacy.settings import Privacy

AT_ONE = {"rho": cost_of(Privacy(epsilon=1.0, delta=1e-5)), "delta": 1e-5}


@pytest.fixture
def shown(tmp_path):
    def told(**entry) -> str:
        AuditLog(tmp_path / "audit.jsonl").append(entry)
        console = Console(width=200)
        with console.capture() as capture:
            console.print(log_table(list(entries(tmp_path / "audit.jsonl", last=1))))
        return capture.get()

    return told


def line(**costs) -> Line:
    opening = Opening(study="5" * 64, version="v", cohort=("oslo", "lima"), name="cells", run="run.1", **costs)
    return Line(number=1, time="", opening=opening, audit=NO_ENTRY, previous="", digest="6" * 64)


def test_a_refusal_is_shown_with_the_reason_that_stayed_here(shown):
    said = shown(what="refused", code="pins", detail="lima: nobody has pinned its key here")
    assert "nothing: pins (reason, not sent: lima: nobody has pinned its key here)" in said
    assert "nothing: busy " in shown(what="refused", code="busy")


def test_a_reason_of_several_lines_is_one_for_the_table(shown):
    said = shown(what="refused", code="data", detail="a.csv, row 3: expected a number.\nMend it.")
    assert "a.csv, row 3: expected a number. Mend it." in said


def test_an_answer_that_told_less_than_the_reason_is_shown_with_it(shown):
    said = shown(what="answered", left='{"data": "not readable"}', detail="a.csv, row 3, column 'b': got 'x'")
    assert """{"data": "not readable"} (reason, not sent: a.csv, row 3, column 'b': got 'x')""" in said


def test_what_was_spent_is_told(shown):
    said = shown(**entry_of(line(masked=True, **AT_ONE)))
    assert "charged to the budget: a masked sum of the study 'cells', epsilon = 1, delta = 1e-05" in said
    said = shown(**entry_of(line(masked=False, rho=math.inf)))
    assert "charged to the budget: open sums of the study 'cells', no noise" in said
    assert "does not tell whole" in shown(what="spent")
