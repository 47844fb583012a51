"""`silograph site budget`, and what those who approve a study are told of what it spends."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import entries
from silograph.federation.site.budget import Budget
from silograph.federation.site.openings import Opening
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.spending import cost_of
from silograph.privacy.settings import Privacy
from testing.consortium import SITES, Consortium

SITE = "oslo"
AT_ONE = cost_of(Privacy(epsilon=1.0, delta=1e-5))
KEYS = "[keys]\n" + "".join(f'{site} = "{number:064x}"\n' for number, site in enumerate(SITES))
MASKED = f'[privacy]\nsums = "masked"\n{KEYS}'
NOISY = "[privacy]\nepsilon = 1\ndelta = 1e-5\nmin_samples = 20\n"


@pytest.fixture
def make(tmp_path):
    def made(**limits) -> Consortium:
        consortium = Consortium(tmp_path, **{"approve_all": False, **limits})
        (tmp_path / SITE / "federation.invite").touch()
        return consortium

    return made


def site(home: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["site", words[0], "--folder", str(home), *words[1:]])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def charge(home: Path, number: int, **changes) -> None:
    given = {"version": "v", "cohort": SITES, "masked": True, "rho": AT_ONE, "delta": 1e-5, "name": f"study {number}"}
    settings = SiteSettings(name=SITE, federation="f", server="s", data=Path("x"))
    Budget(home).charge(Opening(**{"study": f"{number:064x}", **given, **changes}), settings, run="run.1")


def write(consortium: Consortium, privacy: str = "", method: str = "oneshot", **top: str) -> Path:
    consortium.run(f'method = "{method}"\ndegree = 3', privacy, **{"share_graphs": "false", **top})
    return consortium.folder / "study.toml"


THREE = '["kyoto", "lima", "oslo"]'


# --- site budget ------------------------------------------------------------------------------------------------------


def test_a_site_that_has_answered_nothing_has_spent_nothing(make, tmp_path):
    make()
    said = site(tmp_path / SITE, "budget")
    assert "Nothing of these data was opened yet." in said
    assert "Limit: epsilon = 10 for studies with noise" in said
    assert "Limit: none on openings without noise" in said


def test_the_table_tells_each_study_what_is_spent_and_what_is_left(make, tmp_path):
    make(epsilon_total=2.0)
    home = tmp_path / SITE
    charge(home, 1)
    said = site(home, "budget")
    for words in ("study 1", "kyoto, lima, oslo", "masked", "1e-05", f"{AT_ONE:.4g}"):
        assert words in said, words
    assert f"Spent: epsilon = 1 at delta = 1e-05 (rho = {AT_ONE:.4g}), over all versions" in said
    assert "about one row (or table, where a study says so) change by a factor of at most 2.72" in said
    assert "Limit: epsilon_total = 2 at delta = 1e-05; studies without noise are refused." in said
    assert "Left: 2 more studies at epsilon = 1, or" in said
    charge(home, 2, most=3, unit="table")
    said = site(home, "budget")
    assert "table, 3 of one person" in said
    assert f"{9 * AT_ONE:.4g}" in said
    assert "Left: no study, not even one at epsilon = 0.1, at 3 units of one person." in said


def test_openings_without_noise_have_no_epsilon(make, tmp_path):
    make(sums_total=3)
    charge(tmp_path / SITE, 1, rho=math.inf, delta=None, masked=False, cohort=())
    charge(tmp_path / SITE, 2)
    said = site(tmp_path / SITE, "budget")
    assert "Spent: 1 opening without noise. What was told so is told as it is" in said
    assert "Those with noise alone amount to epsilon = 1 at delta = 1e-05" in said
    assert "Limit: sums_total = 3 without noise. Left: 2." in said
    assert "unknown" in said


def test_the_record_is_json_that_every_program_reads(make, tmp_path):
    make(epsilon_total=2.0)
    charge(tmp_path / SITE, 1)
    charge(tmp_path / SITE, 2, rho=math.inf, delta=None)

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(site(tmp_path / SITE, "budget", "--json"), parse_constant=refuse)
    assert found["format"] == 1
    first, second = found["openings"]
    assert (first["name"], first["cohort"], first["masked"], first["rho"]) == ("study 1", list(SITES), True, AT_ONE)
    assert first["epsilon"] == pytest.approx(1.0)
    assert (second["rho"], second["epsilon"], second["delta"]) == ("inf", "inf", None)
    assert found["spent"] == {"rho": "inf", "epsilon": "inf", "delta": 1e-5, "without_noise": 1}
    assert found["limits"] == {"epsilon_total": 2.0, "delta_total": 1e-5, "sums_total": None, "min_sites": 2}
    assert found["left"] == {"studies_at_epsilon": {"1": 0, "0.5": 0, "0.25": 0, "0.1": 0}, "without_noise": 0}


def test_a_budget_that_is_not_what_the_log_says_is_told_and_accepted(make, tmp_path):
    make()
    home = tmp_path / SITE
    charge(home, 1)
    older = (home / "budget.jsonl").read_bytes()
    charge(home, 2)
    (home / "budget.jsonl").write_bytes(older)
    said = site(home, "budget", code=1)
    assert "budget.jsonl: has 1 openings, the audit log tells of 2" in said
    assert "silograph site restored" in said
    result = CliRunner().invoke(app, ["site", "restored", "--folder", str(home)], input="n\n")
    assert "Nothing was changed" in result.output
    assert (home / "budget.jsonl").read_bytes() == older
    said = site(home, "restored", "--yes")
    assert "everything that the file or the audit log tells of is written down as spent" in said
    assert "1 openings came back from the log" in said
    assert [entry["what"] for entry in entries(home / "audit.jsonl")][2] == "restored"
    assert [one.name for one in Budget(home).openings()] == ["study 1", "study 2"]
    site(home, "restored", code=2)


# --- site approve -----------------------------------------------------------------------------------------------------


def approve(consortium: Consortium, study: Path, *options: str, code: int = 0) -> str:
    return site(consortium.folder / SITE, "approve", str(study), "--yes", *options, code=code)


def test_of_a_masked_study_it_is_said_that_one_sum_leaves_and_not_this_sites_term(make):
    consortium = make()
    said = approve(consortium, write(consortium, MASKED, sites=THREE))
    assert "One masked sum: the coordinator learns the sum over kyoto, lima, oslo, not this site's term." in said
    assert "under masks that only the sum over all sites takes off" in said
    assert "as it is Leaves" not in said
    assert "reported" not in said.split("Leaves in set-up")[1]
    assert "Spends: no noise: the sum is told as it is" in said
    assert "And then: Spent: 1 opening without noise." in said


def test_of_a_noisy_study_it_is_said_what_it_spends_and_what_is_left_then(make):
    consortium = make(epsilon_total=1.0)
    said = approve(consortium, write(consortium, NOISY, "exact"))
    assert "for each pair of nodes, with noise" in said
    assert "It carries noise: epsilon = 1, delta = 1e-05 for one row." in said
    assert f"Spends: epsilon = 1, delta = 1e-05 for one row (rho = {AT_ONE:.4g})." in said
    assert "name persons ([table] person)" in said
    assert "Left: no study, not even one at epsilon = 0.1." in said
    both = approve(consortium, write(consortium, NOISY + MASKED.removeprefix("[privacy]\n"), sites=THREE))
    assert "with a share of the noise, under masks" in both
    assert "it is enough if at most 1 tell theirs" in both
    assert "to publish it is outside that promise" in both


def test_a_study_over_budget_is_not_approved(make):
    consortium = make(epsilon_total=1.0)
    said = approve(consortium, write(consortium), code=2)
    assert "Not approved: the study has no epsilon; with epsilon_total = 1" in said
    charge(consortium.folder / SITE, 1)
    said = approve(consortium, write(consortium, NOISY), code=2)
    assert "Not approved: epsilon = 1 is spent, with this study it would be 1.4" in said
    assert Approvals(consortium.folder / SITE).approved() == []


def test_the_cure_is_one_that_helps(make):
    consortium = make(epsilon_total=1.0)
    charge(consortium.folder / SITE, 1, rho=math.inf, delta=None)
    said = approve(consortium, write(consortium, NOISY), code=2)
    assert "openings without noise were made before (1), so that no total epsilon can hold" in said
    assert "take it out of site.toml, knowingly" in said
    assert "more noise" not in said.split("Not approved", 1)[1]


def test_who_approves_a_study_with_keys_that_are_not_pinned_is_told_that_it_is_refused(make):
    consortium = make()
    said = approve(consortium, write(consortium, MASKED, sites=THREE))
    assert said.endswith("before the run begins.")
    assert "this site refuses it (pins) until the keys of" in said


def test_a_masked_sum_over_other_sites_is_approved_only_by_people_who_say_so(make):
    consortium = make()
    charge(consortium.folder / SITE, 1, rho=math.inf, delta=None, cohort=("cairo", *SITES))
    study = write(consortium, MASKED, sites=THREE)
    said = approve(consortium, study, code=2)
    assert "a masked sum over cairo, kyoto, lima, oslo left before" in said
    assert "their difference shows the sites that came or went" in said
    approve(consortium, study, "--despite-difference")
    (approval,) = Approvals(consortium.folder / SITE).approved()
    assert approval.despite
    last = list(entries(consortium.folder / SITE / "audit.jsonl"))[-1]
    assert last["detail"].endswith(", despite other sites")


def test_what_a_study_shows_together_with_earlier_ones_is_said(make):
    consortium = make()
    charge(consortium.folder / SITE, 1, rho=math.inf, delta=None)
    said = approve(consortium, write(consortium))
    assert "You sent masked sums before ('study 1'). This study is open" in said


def test_a_study_that_was_opened_before_spends_nothing_more(make):
    consortium = make(epsilon_total=1.0)
    study = write(consortium, NOISY)
    approve(consortium, study)
    (approval,) = Approvals(consortium.folder / SITE).approved()
    charge(consortium.folder / SITE, 1, study=approval.sha, version=approval.table, masked=False)
    assert "Spends: nothing more. The same study was opened before" in approve(consortium, study)
