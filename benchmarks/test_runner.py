"""The runner that all suites share, from a catalogue to a page."""

import importlib
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import run, saved
from benchmarks.contest import Contest
from benchmarks.page import draw, markdown, read
from benchmarks.processes import ROOT, StepError
from benchmarks.report import Page, cell, ratio_of, records_of
from benchmarks.suite import NAMES, OURS, QUICK, Competitor, Effort, Part, Record, Suite, find_suite

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    value: int


def suite_of(
    n_cases: int, measured: list[int], *, killed_at: int | None = None, failing_at: int | None = None
) -> Suite:
    """A suite that notes what it measures, and is killed at some case, or fails there."""

    def measure(case: Number, effort: Effort, earlier: Sequence[Record]) -> Record:
        if case.value == killed_at:
            raise KeyboardInterrupt
        if case.value == failing_at:
            raise StepError("failed: no memory")
        measured.append(case.value)
        return {"square": case.value**2}

    cases = [Number(value=k) for k in range(n_cases)]
    return Suite(name="one_silo", parts={"numbers": Part(full=cases, quick=cases[:1], measure=measure)})


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a made-up suite as the command does; what is in its file then."""
    monkeypatch.setattr(
        saved, "page_of", lambda suite, report: Page(title="", introduction=[], how_to_read="", tables=[], claims=[])
    )

    def go(suite: Suite, *arguments: str) -> list[int]:
        monkeypatch.setattr(run, "find_suite", lambda name: suite)
        run.main(["one_silo", "--out", str(tmp_path), *arguments])
        return [one["square"] for one in json.loads((tmp_path / "one_silo.json").read_text())["numbers"]]

    return go


def test_after_a_kill_nothing_is_lost_and_nothing_is_measured_twice(runner) -> None:
    measured: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        runner(suite_of(6, measured, killed_at=3))
    assert runner(suite_of(6, measured)) == [0, 1, 4, 9, 16, 25]
    assert measured == [0, 1, 2, 3, 4, 5]


def test_a_case_that_fails_is_told_and_the_others_are_measured(runner) -> None:
    measured: list[int] = []
    with pytest.raises(SystemExit, match=r"one_silo, numbers: Number\(value=1\): failed: no memory"):
        runner(suite_of(3, measured, failing_at=1))
    assert runner(suite_of(3, measured)) == [0, 1, 4]
    assert measured == [0, 2, 1]


def test_a_case_of_other_code_or_settings_is_measured_anew(runner, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    runner(suite_of(2, measured))
    runner(suite_of(2, measured))
    assert measured == [0, 1]
    runner(suite_of(2, measured), "--time-limit", "9")
    assert measured == [0, 1] * 2
    monkeypatch.setattr(saved, "code_version", lambda suite: "other")
    runner(suite_of(2, measured), "--time-limit", "9")
    assert measured == [0, 1] * 3
    runner(suite_of(2, measured), "--time-limit", "9", "--anew")
    assert measured == [0, 1] * 4


def test_a_new_case_is_added_in_its_place_and_one_that_is_gone_is_dropped(runner) -> None:
    measured: list[int] = []
    runner(suite_of(3, measured), "--only", "value=0", "value=2")
    assert runner(suite_of(3, measured)) == [0, 1, 4]
    assert measured == [0, 2, 1]
    assert runner(suite_of(2, measured), "--anew") == [0, 1]


def test_the_rest_is_estimated_by_what_cases_took_before(runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner(suite_of(2, []))
    assert "[1/2, about 0 min left] one_silo, numbers: Number(value=0)" in capsys.readouterr().out
    runner(suite_of(2, []))
    assert "one_silo: 2 cases measured before and kept, 0 to measure" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_whose_process_is_killed_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "joint", "--quick", "--parts", "rounds", "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("[2/2"):
                os.kill(process.pid, signal.SIGKILL)
                break
    (kept,) = json.loads((tmp_path / "quick.joint.json").read_text())["rounds"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "joint: 1 cases measured before and kept, 1 to measure" in said
    records = json.loads((tmp_path / "quick.joint.json").read_text())["rounds"]
    assert len(records) == 2
    assert records[0] == kept


@pytest.mark.parametrize("suite", NAMES)
def test_a_saved_page_is_what_its_data_make(suite: str) -> None:
    page = saved.page_of(suite, json.loads((RESULTS / f"{suite}.json").read_text()))
    assert page.markdown() == (RESULTS / f"{suite}.md").read_text()


def test_the_page_with_figures_is_what_the_data_make(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    reports = read(RESULTS)
    text = markdown(reports)
    assert text == (ROOT / "docs" / "benchmarks.md").read_text()
    drawn = draw(reports, tmp_path)
    assert [path.name for path in drawn if f"(images/{path.name})" not in text] == []
    assert max(path.stat().st_size for path in drawn) < 150_000
    assert all((ROOT / "docs" / "images" / path.name).exists() for path in drawn)


@pytest.mark.parametrize("suite", ["one_silo", "joint"])
def test_every_competitor_of_the_catalogue_exists(suite: str) -> None:
    for competitor in importlib.import_module(f"benchmarks.{suite}.catalogue").EVERYBODY:
        module = importlib.import_module(f"benchmarks.{suite}.solvers.{competitor.module}")
        assert competitor.name in module.SOLVERS


def test_a_suite_has_its_own_parts_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["one_silo", "--parts", "rounds"])
    assert "one_silo: the parts are instances, growth, not rounds" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["two_silos"])
    assert "not two_silos" in capsys.readouterr().err


def test_competitors_are_pinned_to_the_versions_that_were_measured() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(line.split("==") for line in project["optional-dependencies"]["bench"] if "==" in line)
    catalogues = [importlib.import_module(f"benchmarks.{suite}.catalogue") for suite in ("one_silo", "joint")]
    assert set(pins) == {package for one in catalogues for peer in one.EVERYBODY for package in peer.needs}
    for report in read(RESULTS).values():
        for record in records_of(report):
            used = record["made"]["versions"]
            assert {name: used[name] for name in pins if used.get(name)}.items() <= pins.items()


def test_code_that_only_shows_results_is_not_part_of_the_version() -> None:
    shown = {path.name for name in NAMES for path in (saved.HERE / name).glob("*.py")} & saved.SHOWING
    assert shown == saved.SHOWING
    assert all((saved.HERE / name).exists() for name in saved.MEASURING)
    assert len({saved.code_version(name) for name in NAMES}) == len(NAMES)


def timed(*seconds: float) -> Record:
    laps = [{"seconds": {"1e-06": one}, "solver_seconds": {}} for one in seconds]
    return {"outcome": "ran", "effort": {"1e-06": 1}, "laps": laps}


def test_a_ratio_is_of_times_of_the_same_lap() -> None:
    peer = Competitor(name="peer", module="")
    record = {"solvers": {OURS: timed(1.0, 2.0, 4.0, 4.0), "peer": timed(3.0, 4.0, 4.0)}}
    ratio = ratio_of(record, peer, "1e-06")
    assert ratio is not None
    assert (ratio.median, ratio.least, ratio.most) == (2.0, 1.0, 3.0)
    assert "2× (1–3)" in cell(record, peer, ["1e-06"])
    assert ratio_of(record, peer, "0.0001") is None


def test_another_model_has_times_and_no_ratio() -> None:
    stranger = Competitor(name="stranger", module="", same_model=False)
    record = {"solvers": {OURS: timed(1.0), "stranger": timed(2.0)}}
    assert cell(record, stranger, ["1e-06"]) == "2 s"
    with pytest.raises(ValueError, match="another model"):
        ratio_of(record, stranger, "1e-06")


def test_solvers_take_turns_and_a_failure_is_told(tmp_path: Path) -> None:
    catalogue = importlib.import_module("benchmarks.one_silo.catalogue")
    broken = Competitor(name="nobody", module="nowhere")
    missing = Competitor(name="absent", module="nowhere", needs=("no_such_package",))
    chosen = [one for one in catalogue.EVERYBODY if one.name in (OURS, "fdpg-restart")]
    contest = Contest(suite="one_silo", competitors=[*chosen, broken, missing])
    found = contest.measure(catalogue.Case(dataset="iid", n_nodes=20, degree=4), QUICK, [])["solvers"]
    assert [len(found[name]["laps"]) for name in (OURS, "fdpg-restart")] == [QUICK.laps] * 2
    assert found["nobody"]["outcome"].startswith("failed: ")
    assert found["absent"] == {"outcome": "skipped", "laps": [], "reason": "no_such_package not installed"}


@pytest.mark.slow
@pytest.mark.parametrize("suite", NAMES)
def test_a_quick_run_measures_every_part(tmp_path: Path, suite: str) -> None:
    run.main([suite, "--quick", "--out", str(tmp_path)])
    found = json.loads((tmp_path / f"quick.{suite}.json").read_text())
    parts = find_suite(suite).parts
    assert {name: len(found[name]) for name in parts} == {name: len(part.quick) for name, part in parts.items()}
    assert (tmp_path / f"quick.{suite}.md").read_text().startswith("# ")
