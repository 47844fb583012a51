"""`silograph reproduce`: options in, tables and figures out, and messages where something is missing."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from silograph import __version__
from silograph.cli import experiments as cli_experiments
from silograph.cli.app import app
from silograph.experiments import catalogue
from silograph.experiments.catalogue import EXPERIMENTS, Experiment
from testing.small_experiments import KNOWN_REGIONS, SCALE, write_abide, write_coil

SYNTHETIC = ("table1", "table3", "figure-weights")


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """A working folder of its own, no published data, and a quick look that is quicker still."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SILOGRAPH_DATA", raising=False)
    monkeypatch.setattr(cli_experiments, "QUICK", SCALE)


def reproduce(*arguments: str):
    return CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=False)


def files_in(folder: str) -> dict[str, bytes]:
    """The results in a folder, but for the record of seconds."""
    paths = [path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("run")]
    return {path.name: path.read_bytes() for path in paths}


def keep(monkeypatch, *names: str) -> None:
    """Leave only these in the catalogue."""
    monkeypatch.setattr(catalogue, "EXPERIMENTS", tuple(one for one in EXPERIMENTS if one.name in names))


# --- what can be asked for --------------------------------------------------------------------------------------------


def test_the_list_has_every_name_in_a_line_of_its_own():
    result = reproduce("--list")
    assert result.exit_code == 0
    first_words = [line.split()[0] for line in result.output.splitlines() if line.strip() and line[0] != " "]
    assert first_words == ["name", *(experiment.name for experiment in EXPERIMENTS), "all"]
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "reproduce --list"),
        (("tabel1",), "tabel1: no such table or figure"),
        (("table1", "--seeds", "1"), "--seeds: expected a whole number ≥ 2, got 1"),
        (("table1", "--seeds", "-3"), "--seeds"),
        (("table4", "--draws", "0"), "--draws"),
        (("table1", "--workers", "0"), "--workers: expected a whole number ≥ 1, got 0"),
        (("table1", "--seeds", "many"), "--seeds"),
    ],
)
def test_wrong_options_are_told_and_leave_nothing_behind(arguments, words):
    result = reproduce(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", ["table4", "table5", "figure-communities", "figure-brain"])
def test_data_that_are_missing_are_told_with_where_to_get_them(name):
    result = reproduce(name, "--quick", "--out", "here")
    assert result.exit_code == 1
    assert "SILOGRAPH_DATA is not set" in result.output
    assert "Get it from" in result.output


def test_data_that_are_not_where_they_were_said_to_be_are_told():
    result = reproduce("table5", "--quick", "--abide", "nowhere.npz")
    assert result.exit_code == 1
    assert "nowhere.npz does not exist" in result.output


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_told_before_the_work(out):
    Path("file").touch()
    result = reproduce("table1", "--quick", "--out", out)
    assert result.exit_code == 1
    assert "cannot be written" in result.output or "expected a folder" in result.output
    assert [path.name for path in Path().iterdir()] == ["file"]


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_a_table_is_shown_and_written_three_ways_and_again_byte_for_byte():
    result = reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "X")
    assert result.exit_code == 0, result.output
    for words in ("Table I", "N = 20", "PPGL-C, exact", "0.566", "Written to X"):
        assert words in result.output
    first = files_in("X")
    assert sorted(first) == ["table1.csv", "table1.json", "table1.md"]
    cells = {path.name: path.stat().st_mtime_ns for path in Path("X/.cells").iterdir()}
    assert len(cells) == 6  # three scenarios, two seeds

    assert reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "X").output == result.output
    assert files_in("X") == first
    assert {path.name: path.stat().st_mtime_ns for path in Path("X/.cells").iterdir()} == cells

    anew = reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "Y")
    assert anew.exit_code == 0
    assert files_in("Y") == first


def test_how_many_processes_work_changes_no_byte():
    for workers in ("1", "2"):
        folder = str(Path.cwd() / workers)  # processes at work may have been started elsewhere
        result = reproduce("table2", "figure-weights", "--quick", "--workers", workers, "--out", folder, "--quiet")
        assert result.exit_code == 0, result.output
    assert files_in("1") == files_in("2")
    assert {"table2.json", "figure-weights.svg", "figure-weights.png"} <= set(files_in("1"))


def test_more_seeds_take_over_what_is_there():
    assert reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "X", "-q").exit_code == 0
    two = set(Path("X/.cells").iterdir())
    assert reproduce("table1", "--quick", "--seeds", "3", "--workers", "1", "--out", "X", "-q").exit_code == 0
    assert two < set(Path("X/.cells").iterdir())
    assert "Means over 3 seeds" in Path("X/table1.md").read_text(encoding="utf-8")


def test_the_record_has_versions_sizes_and_seconds():
    assert reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "X").exit_code == 0
    record = json.loads(Path("X/run-table1.json").read_text(encoding="utf-8"))
    assert record["silograph"] == __version__
    assert record["scale"]["seeds"] == 2
    assert record["workers"] == 1
    assert list(record["seconds"]) == ["table1"]
    assert "exact" in record["core seconds by method"]
    assert {"numpy", "scipy", "numba"} <= set(record["libraries"])


def test_quiet_prints_nothing_and_writes_all_the_same():
    result = reproduce("figure-weights", "--quick", "--workers", "1", "--out", "X", "--quiet")
    assert result.exit_code == 0
    assert result.output == ""
    assert "figure-weights.svg" in files_in("X")


def test_results_go_to_a_folder_named_after_their_size(monkeypatch):
    keep(monkeypatch, "figure-weights")
    result = reproduce("figure-weights", "--quick", "--workers", "1")
    assert "Written to paper-quick" in result.output
    assert "figure-weights.svg" in result.output
    assert "figure-weights.md" in files_in("paper-quick")


def test_data_may_be_named(monkeypatch):
    abide = write_abide(Path("abide.npz"), KNOWN_REGIONS)
    result = reproduce("table5", "--quick", "--workers", "1", "--abide", str(abide), "--out", "X")
    assert result.exit_code == 0, result.output
    assert "7 autistic subjects and 9 controls" in " ".join(result.output.split())


def test_data_are_found_where_the_environment_says(monkeypatch):
    write_abide(Path("abide.npz"), KNOWN_REGIONS)
    write_coil(Path("coil20.npz"))
    monkeypatch.setenv("SILOGRAPH_DATA", str(Path.cwd()))
    assert "not found" not in reproduce("--list").output
    assert reproduce("table5", "--quick", "--workers", "1", "--out", "X", "-q").exit_code == 0


def test_all_leaves_out_what_has_no_data_and_says_so(monkeypatch):
    keep(monkeypatch, "table1", "table4", "figure-weights", "figure-brain")
    result = reproduce("all", "--quick", "--workers", "1", "--out", "X")
    assert result.exit_code == 0
    for name in ("table4", "figure-brain"):
        assert re.search(rf"Note: Left out: .*{name}", result.output)
    assert result.output.count("Get it from") == 2
    written = files_in("X")
    assert {"index.md", "table1.md", "figure-weights.md"} <= set(written)
    assert not any(name.startswith(("table4", "figure-brain")) for name in written)
    index = written["index.md"].decode()
    assert "table1.md" in index
    assert "table4.md" not in index
    record = json.loads(Path("X/run.json").read_text(encoding="utf-8"))
    assert set(record["skipped"]) == {"table4", "figure-brain"}
    assert set(record["seconds"]) == {"table1", "figure-weights"}


def test_all_that_is_quiet_prints_nothing_but_errors(monkeypatch):
    keep(monkeypatch, "table4", "figure-weights")
    result = reproduce("all", "--quick", "--workers", "1", "--out", "X", "--quiet")
    assert result.exit_code == 0
    assert result.output == ""


# --- interrupted, and without what is optional ------------------------------------------------------------------------


def test_an_interrupted_run_says_how_to_go_on_and_does(monkeypatch):
    assert reproduce("table1", "--quick", "--seeds", "2", "--workers", "1", "--out", "X").exit_code == 0
    kept = {path.name: path.stat().st_mtime_ns for path in Path("X/.cells").iterdir()}

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "run", property(lambda self: interrupted))
        result = reproduce("table1", "--quick", "--seeds", "3", "--workers", "1", "--out", "X")
    assert result.exit_code == 130
    assert "Interrupted; run the same command again: what was finished is kept." in " ".join(result.output.split())

    assert reproduce("table1", "--quick", "--seeds", "3", "--workers", "1", "--out", "X").exit_code == 0
    after = {path.name: path.stat().st_mtime_ns for path in Path("X/.cells").iterdir()}
    assert len(after) == 9
    assert {name: after[name] for name in kept} == kept


@pytest.mark.parametrize(("missing", "name"), [("joblib", "table1"), ("matplotlib", "figure-weights")])
def test_without_the_extra_the_message_says_what_to_install(missing, name):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from silograph.cli.app import app\n"
        f"app(['reproduce', {name!r}, '--quick', '--seeds', '2', '--workers', '1'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert f"{missing} is needed" in result.stderr
    assert "silograph[paper]" in result.stderr


def test_progress_counts_each_set_of_jobs_by_its_own_number(monkeypatch):
    shown = []

    class Watched(cli_experiments.Progress):
        def __exit__(self, *error):
            shown.extend((task.description, task.completed, task.total) for task in self.tasks)
            return super().__exit__(*error)

    monkeypatch.setattr(cli_experiments, "Progress", Watched)
    with cli_experiments._reporting(Console(file=io.StringIO(), force_terminal=True)) as on_progress:
        on_progress("ABIDE", 0, 1)
        on_progress("ABIDE", 1, 1)
        on_progress("ABIDE", 0, 5)
        on_progress("ABIDE", 3, 5)
    assert shown == [("ABIDE", 3, 5)]
