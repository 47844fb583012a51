"""Processes of a real federation killed in the midst of a run: it ends all the same, with the same bits.

One moment each. `benchmarks/federation/faults.py` kills at random moments, and more than processes.
"""

import json

import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.request import NO_KEY
from testing.consortium import SITES
from testing.real_federation import KINDS, RealFederation, study_text
from testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

LEARN = 'method = "algorithm1"\nrounds = 60\nalpha = 0.5\nbeta = 0.25'
CERTIFIED = 'method = "exact"\ndegree = 3\ntol = 1e-9'
FOUR_SITES = (*SITES, "quito")


def rounds(fed: RealFederation) -> int:
    """How many rounds the latest run has done."""
    runs = sorted((fed.fed / "runs").glob("*"), key=lambda run: run.stat().st_ctime)
    with History.open_read(runs[-1] / "history.sqlite") as history:
        return len(history.rounds())


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_outlives_a_process_that_is_killed(fed, tmp_path, kind):
    text = study_text(LEARN, name=f"kill the {kind}")
    before = len(list((fed.fed / "runs").glob("*")))
    run = fed.start_run(text, tmp_path / "out")
    eventually(lambda: len(list((fed.fed / "runs").glob("*"))) > before and rounds(fed) >= 3)
    fed.kill(kind, "lima")
    told, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode in (0, 3), errors
    assert json.loads(told)["federation"]["attempts"] > 1
    fed.assert_conforms(tmp_path / "out", text)
    fed.wait_connected()


def test_a_site_revoked_in_the_midst_of_a_run_is_left_out_at_once(tmp_path):
    """Not after the study's timeout: nobody waits for it to come back."""
    text = study_text(LEARN.replace("60", "300"), 'on_missing = "continue"\nquorum = 2\ntimeout = 3600')
    with RealFederation(tmp_path / "fed") as fed:
        run = fed.start_run(text, tmp_path / "out")
        eventually(lambda: any((fed.fed / "runs").glob("*")) and rounds(fed) >= 3)
        fed.command("federation", "revoke", "lima", "--folder", fed.fed)
        told, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode in (0, 3), errors
        assert json.loads(told)["federation"]["left_out"] == {"lima": NO_KEY}
        fed.assert_conforms(tmp_path / "out", text, ("kyoto", "oslo"))


def test_a_run_goes_on_without_a_site_that_is_gone_for_good_if_the_study_says_so(tmp_path):
    text = study_text(CERTIFIED, 'on_missing = "continue"\ntimeout = 15')
    with RealFederation(tmp_path / "fed", sites=FOUR_SITES) as fed:
        run = fed.start_run(text, tmp_path / "out")
        eventually(lambda: (fed.fed / "runs").exists() and fed.find("server job") is not None)
        fed.stop_site("lima")
        told, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
        record = json.loads(told)
        assert list(record["federation"]["left_out"]) == ["lima"]
        assert record["result"]["relative_gap"] <= 1e-9
        fed.assert_conforms(tmp_path / "out", text, ("kyoto", "oslo", "quito"))
