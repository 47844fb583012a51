"""Every command shown in the docs runs; `>>>` examples are doctests and need no help."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from silograph.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "paper")]
BLOCKS = [
    (page.relative_to(ROOT).as_posix(), block)
    for page in PAGES
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if kind in ("", "console", "bash")
]
COMMANDS = [(page, line) for page, block in BLOCKS for line in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE)]
SHOWN = sorted({line for _, block in BLOCKS for line in re.findall(r"^ *(silograph .*)$", block, flags=re.MULTILINE)})


def test_the_docs_show_commands():
    assert len({page for page, _ in COMMANDS}) >= 5
    assert len(SHOWN) >= 20


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_command_of_the_docs_runs(page, command, tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    names = ["Thalamus_L", "Thalamus_R", "Insula_L", "Insula_R", "Hippocampus_L", "Hippocampus_R", "Caudate", "Putamen"]
    brain = pd.DataFrame(rng.normal(size=(60, 8)), columns=names)
    brain.to_csv("brain.csv", index=False)
    for silo in ("oslo", "lima", "kyoto"):
        pd.DataFrame(rng.normal(size=(60, 8)), columns=names).to_csv(f"{silo}.csv", index=False)
        for patient in ("p01", "p02"):
            Path(silo).mkdir(exist_ok=True)
            pd.DataFrame(rng.normal(size=(60, 8)), columns=names).to_csv(f"{silo}/{patient}.csv", index=False)
    load_breast_cancer(as_frame=True).data.to_csv("cells.csv", index=False)
    brain.assign(date="2014-01-01", quality_flag="good").to_csv("weather.csv", index=False)
    Path("zeros.csv").write_text("source,target\nThalamus_L,Thalamus_R\n")
    program, *arguments = shlex.split(command)
    if program == "python":
        subprocess.run([sys.executable, *arguments], check=True)
        return
    assert program == "silograph"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_that_is_only_shown_has_these_options(line):
    """Those that need a federation, or go on for ever, are not run: all but what they do is checked."""
    typed = re.split(r"\s(?:#|>|&|\|)|\s\[OPTIONS\]", line)[0]
    _, *arguments = shlex.split(typed)
    result = CliRunner().invoke(app, [*arguments, "--help"])  # unknown commands and options are refused before
    assert result.exit_code == 0, f"{line}\n{result.output}"


def test_the_tutorials_summary_is_the_one_that_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_breast_cancer(as_frame=True).data.to_csv("cells.csv", index=False)
    result = CliRunner().invoke(app, ["learn", "cells.csv", "--degree", "4", "--standardize"])
    shown = (DOCS / "tutorials" / "first-graph.md").read_text(encoding="utf-8")
    printed = {
        line.split("│")[1].strip(): line.split("│")[2].strip() for line in result.output.splitlines() if "│" in line
    }
    for name in ("nodes", "edges", "mean degree"):
        assert re.search(rf"{name} +{re.escape(printed[name])}", shown)


def test_the_landing_page_shows_what_its_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = load_breast_cancer(as_frame=True).data
    for number, name in enumerate(("oslo", "lima", "kyoto")):
        cells[number::3].to_csv(f"{name}.csv", index=False)
    block = next(block for page, block in BLOCKS if page == "docs/index.md" and "$ silograph learn" in block)
    command, *shown = block.strip().splitlines()
    result = CliRunner().invoke(app, shlex.split(command)[2:])
    printed = [line.rstrip() for line in result.output.splitlines()]
    assert shown == printed[: len(shown)]


def test_the_tutorial_of_a_federation_shows_what_its_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = load_breast_cancer(as_frame=True).data
    for number, name in enumerate(("oslo", "lima", "kyoto")):
        cells[number::3].to_csv(f"{name}.csv", index=False)
    blocks = [block for page, block in BLOCKS if page == "docs/tutorials/federation.md"]
    command = next(block for block in blocks if block.startswith("silograph learn"))
    between, alone = (block.splitlines() for block in blocks if block.startswith("3 silos"))
    printed = [line.rstrip() for line in CliRunner().invoke(app, shlex.split(command)[1:]).output.splitlines()]
    assert alone == printed[: len(alone)]
    (row,) = (line for line in between if "consensus" in line)
    assert row.split() == ["│", "consensus", "│", "│", "75", "│", "5.00", "│", "│"]
    assert [line for line in alone[-3:] if line not in between] == []  # the same sum: the same parameters


def test_architecture_has_a_row_for_every_package():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    first_cells = " ".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE))
    package = ROOT / "src" / "silograph"
    for folder in sorted(path.parent for path in package.glob("*/__init__.py")):
        assert re.search(rf"\b{folder.name}/?`", first_cells), f"{folder.name} has no row"


def test_the_demo_draws_its_picture(tmp_path):
    pytest.importorskip("matplotlib")
    import runpy

    silos = runpy.run_path(str(ROOT / "examples" / "silos.py"))
    silos["main"](tmp_path / "demo")
    assert (tmp_path / "demo" / "silos.png").stat().st_size > 50_000
    digits = runpy.run_path(str(ROOT / "examples" / "digits.py"))
    digits["main"](tmp_path / "run")
    assert (tmp_path / "run" / "graph.png").stat().st_size > 10_000
    assert np.load(tmp_path / "run" / "graph.npz")["weights"].size > 100


def test_the_readmes_ratios_are_those_measured():
    import json

    from benchmarks.one_silo.catalogue import EVERYBODY
    from benchmarks.report import seconds_of

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    published = [peer.name for peer in EVERYBODY if peer.first_order and peer.published]
    records = json.loads((ROOT / "benchmarks" / "results" / "one_silo.json").read_text())["instances"]
    for n_nodes, words in ((500, "{:.0f}× faster\n  at 500 nodes"), (1000, "{:.0f}× at 1000")):
        record = next(r for r in records if r["case"] == {"dataset": "smooth", "n_nodes": n_nodes, "degree": 5})
        times = [seconds for name in published if (seconds := seconds_of(record, name, "1e-08"))]
        assert words.format(min(times) / seconds_of(record, "silograph", "1e-08")) in readme


def test_the_readmes_rounds_and_seconds_are_those_measured():
    import json

    from benchmarks.joint.claims import is_timed, study_seconds

    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    measured = json.loads((ROOT / "benchmarks" / "results" / "joint.json").read_text())
    rounds = [one["rounds"]["1e-06"] for record in measured["rounds"] for one in record["found"]]
    assert (
        f"in {np.median(rounds):.0f} rounds in the median of {len(rounds)} instances, in {max(rounds)} at most"
        in readme
    )
    hundred = next(record for record in measured["growth"] if is_timed(record))
    assert f"100 silos of 100 nodes take {np.median(study_seconds(hundred)):.1f} s" in readme
