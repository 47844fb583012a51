"""`silograph audit`: a study, a run or nothing in; a table or JSON and an exit code out."""

import json

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import silograph
from silograph.audit import attacks
from silograph.audit.findings import Finding
from silograph.audit.scene import Scene
from silograph.cli.app import app
from silograph.cli.audit import table_of

STUDY = """
name = "trial"
nodes = ["a", "b", "c"]
sites = ["oslo", "lima", "kyoto", "quito"]
share_graphs = false
[learn]
method = "oneshot"
[privacy]
"""
KEYS = "[keys]\n" + "".join(f'{site} = "{k:064x}"\n' for k, site in enumerate(("oslo", "lima", "kyoto", "quito")))
MASKED_WITH_NOISE = 'sums = "masked"\nepsilon = 0.5\ndelta = 1e-6\nmin_samples = 300\n'


def audit(*arguments: object):
    return CliRunner().invoke(app, ["audit", "--quick", *map(str, arguments)], catch_exceptions=False)


def write_study(tmp_path, privacy: str):
    path = tmp_path / "study.toml"
    path.write_text(STUDY + privacy + KEYS)
    return path


def finding(**changed) -> Finding:
    usual = {"name": "a", "who": "w", "holds": "h", "attack": "t", "measure": "m", "measured": 0.5}
    return Finding(**{**usual, "broken": False, "protected": True, **changed})


def test_a_study_is_attacked_by_its_own_numbers(tmp_path):
    result = audit(write_study(tmp_path, MASKED_WITH_NOISE), "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["as_claimed"]
    assert told["about"] == "the study 'trial'"
    found = {one["name"]: one for one in told["findings"]}
    assert not {name for name in found if name.startswith("open/")}
    assert found["noise/(e₁ ± e₂)/√2"]["high"] < 0.075  # σ₁ = 8.8 at ε = 0.5, δ = 1e-6: an advantage of .045
    assert {"masked/term", "weighted/refused"} <= set(found)


def test_a_run_is_attacked_in_the_mode_it_was_run_in(tmp_path):
    rng = np.random.default_rng(0)
    tables = [tmp_path / f"{name}.npy" for name in ("oslo", "lima", "kyoto")]
    for path in tables:
        np.save(path, rng.normal(size=(60, 5)))
    silograph.learn_files(tables, method="oneshot", degree=2, out=tmp_path / "run")
    result = audit(tmp_path / "run", "--json")
    names = {one["name"] for one in json.loads(result.stdout)["findings"]}
    ledgers = {"ledger/version", "refusals/ranges", "refusals/no-ranges"}
    assert names == {"open/term", "open/rest", "open/versions", "published/edges"} | ledgers
    assert result.exit_code == 0


def test_a_run_over_one_table_has_nobody_to_attack(tmp_path):
    np.save(tmp_path / "one.npy", np.random.default_rng(0).normal(size=(60, 5)))
    silograph.learn_files(tmp_path / "one.npy", degree=2, out=tmp_path / "run")
    result = audit(tmp_path / "run")
    assert result.exit_code == 2
    assert "one table" in result.stderr


def test_the_table_tells_who_and_what_and_ends_in_one_line(tmp_path):
    path = write_study(tmp_path, 'sums = "masked"\n')
    result = audit(path)
    assert result.exit_code == 0
    for word in ("who", "holds", "attack", "measured", "expected", "verdict", "coordinator", "broken (control)"):
        assert word in result.stdout
    assert "ended as claimed" in result.stdout.splitlines()[-1]
    assert "we promise no protection here" in " ".join(result.stdout.split())


def test_in_a_narrow_terminal_no_word_of_the_table_is_cut():
    console, found = Console(width=80), [finding(who="coordinator and all but two sites", holds="masked answers")]
    with console.capture() as capture:
        console.print(table_of(Scene(trials=500), found, narrow=True))
    words = capture.get().replace("│", " ").split()
    assert {"coordinator", "sites,", "answers:", "holds"} <= {*words}


def test_no_trials_are_no_default():
    assert audit("--trials", 0).exit_code == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"broken": True},  # a protection that does not hold
        {"broken": False, "protected": False},  # what should break does not: the attack is no good
        {"broken": False, "protected": False, "control": True},
        {"low": 0.6, "high": 0.7},  # another number than theory says
    ],
)
def test_what_is_not_as_claimed_makes_the_command_fail(monkeypatch, wrong):
    monkeypatch.setattr(attacks, "attacks_on", lambda scene: (lambda scene: [finding(**wrong)],))
    result = audit()
    assert result.exit_code == 1
    assert "not as claimed" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("a")
    assert audit("--json").exit_code == 1


def test_a_file_that_is_no_study_is_refused(tmp_path):
    (tmp_path / "study.toml").write_text("name = 3\n")
    assert audit(tmp_path / "study.toml").exit_code == 2
    assert audit(tmp_path / "none.toml").exit_code in (1, 2)


# --- planning ------------------------------------------------------------------------------------------------------


def plan(*arguments: object):
    return CliRunner().invoke(app, ["audit", "--plan", *map(str, arguments)], catch_exceptions=False)


def test_a_plan_tells_how_many_people_it_takes_and_more_epsilon_takes_fewer():
    first, second = (
        json.loads(plan("--nodes", 8, "--sites", 4, "--epsilon", epsilon, "--json").stdout) for epsilon in (1, 8)
    )
    assert first["people"] > 2 * second["people"]
    result = plan("--nodes", 8, "--sites", 4)
    assert result.exit_code == 0
    assert f"about {first['people']:,} people at each site" in " ".join(result.stdout.split())


def test_options_of_plans_and_of_audits_do_not_mix():
    assert audit("--nodes", 8).exit_code == 2
    assert plan("--trials", 2000).exit_code == 2
    assert plan("--sites", 2).exit_code == 2  # masks need three
