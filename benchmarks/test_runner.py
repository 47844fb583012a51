"""The runner that all suites share, from a catalogue to a page."""

import importlib
import json
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.processes import ROOT
from benchmarks.suite import NAMES

RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("suite", NAMES)
def test_a_saved_page_is_what_its_data_make(suite: str) -> None:
    page = importlib.import_module(f"benchmarks.{suite}.report").page(
        json.loads((RESULTS / f"{suite}.json").read_text())
    )
    assert page.markdown() == (RESULTS / f"{suite}.md").read_text()


@pytest.mark.parametrize("suite", NAMES)
def test_every_competitor_of_the_catalogue_exists(suite: str) -> None:
    for competitor in importlib.import_module(f"benchmarks.{suite}.catalogue").EVERYBODY:
        module = importlib.import_module(f"benchmarks.{suite}.solvers.{competitor.module}")
        assert competitor.name in module.SOLVERS


def test_a_suite_has_its_own_parts_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["one_silo", "--parts", "rounds"])
    assert "one_silo has the parts instances, not rounds" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "word"), [("one_silo", "d = 50"), ("joint", "d = 34")])
def test_a_quick_run_measures_every_competitor_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suite: str, word: str
) -> None:
    arguments = [suite, "--quick", "--parts", "instances", "--only", word, "--out", str(tmp_path / "out.json")]
    run.main(arguments)
    (record,) = json.loads((tmp_path / "out.json").read_text())["instances"]
    quick = {
        one.name for one in importlib.import_module(f"benchmarks.{suite}.catalogue").SUITE.competitors if one.quick
    }
    assert set(record["solvers"]) == quick
    assert record["solvers"]["silograph"]["seconds"]
    assert (tmp_path / "out.md").read_text().startswith("# ")
    capsys.readouterr()
    run.main([*arguments, "--resume"])
    assert "measured before" in capsys.readouterr().out
