"""`silograph learn` with noise, as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from testing.silo_problems import silo_signals

FILES = ("oslo.csv", "lima.csv", "kyoto.csv")
NOISE = ("--epsilon", "1", "--delta", "1e-5", "--degree", "3")
ONESHOT = (*FILES, "--method", "oneshot", *NOISE)


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch, rng) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in zip(FILES, silo_signals(rng, "different", 3, 6), strict=True):
        np.savetxt(name, values, delimiter=",", header="a,b,c,d,e,f", comments="")


def run(*arguments: str, exit_code: int = 0):
    result = CliRunner().invoke(app, ["learn", *arguments], terminal_width=400)
    assert result.exit_code == exit_code, result.output
    return result


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_summary_tells_the_guarantee_and_what_is_outside(tables):
    said = words(run(*ONESHOT).output)
    assert "ε = 1, δ = 1e-05 for a row; σ₁ = 4.045, ρ = 0.03055; a share of each silo" in said
    assert "own graphs are made of exact data; publishing them is outside the guarantee" in said


def test_without_masks_each_silo_adds_all_of_the_noise(tables):
    assert "all of it by each silo" in words(run(*ONESHOT, "--open-sums").output)


def test_other_methods_have_their_graphs_inside(tables):
    said = words(run(*FILES, *NOISE).output)
    assert "The consensus and the silos' graphs are (1, 1e-05)-differentially private" in said
    assert "outside" not in said


def test_the_record_has_it_too(tables):
    more = ("--unit", "table", "--rows", "2.5", "--collusion", "2", "--out", "run", "--quiet")
    run(*ONESHOT, *more)
    told = json.loads(Path("run/run.json").read_text())["privacy"]
    assert (told["unit"], told["rows"], told["collusion"], told["epsilon"]) == ("table", 2.5, 2, 1)


def test_public_centres_and_scales_are_read_by_the_nodes_names(tables):
    Path("public.csv").write_text("node,centre,scale\n" + "".join(f"{name},1,2\n" for name in "fedcba"))
    run(*ONESHOT, "--standardize", "--public", "public.csv")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*ONESHOT, "--standardize"), "a table's own means and variances"),
        ((*ONESHOT, "--missing", "pairs"), "gaps by pairs"),
        ((*ONESHOT, "--missing-nodes", "allow"), "missing_nodes"),
        ((*ONESHOT, "--sums", "2"), "difference of two sums"),
        ((*ONESHOT, "--rows", "long"), "--rows: expected unit"),
        ((*ONESHOT, "--min-samples", "100000"), "expected at least 100000 rows"),
        (("oslo.csv", *NOISE), "a table alone opens nothing"),
        ((*FILES, "--epsilon", "1"), "needs delta"),
        ((*FILES, "--collusion", "2"), "is for noise alone"),
    ],
)
def test_what_has_no_guarantee_is_refused_by_name(tables, arguments, said):
    result = CliRunner().invoke(app, ["learn", *arguments])
    assert result.exit_code in (1, 2)
    assert said in words(result.output)
