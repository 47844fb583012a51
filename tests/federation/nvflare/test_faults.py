"""Processes of a real federation killed in the midst of a run: it ends all the same, with the same bits.

One moment each. `benchmarks/federation/faults.py` kills at random moments, and more than processes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from silograph.federation.study_file import parse_study
from testing.conformance import assert_same_result, learned_here
from testing.consortium import NODES, SITES
from testing.real_federation import KINDS, PATIENCE, RealFederation, study_text, until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

LEARN = 'method = "algorithm1"\nrounds = 60\nalpha = 0.5\nbeta = 0.25'
CERTIFIED = 'method = "exact"\ndegree = 3\ntol = 1e-9'
FOUR_SITES = (*SITES, "quito")


@pytest.fixture(scope="module")
def fed(tmp_path_factory) -> Iterator[RealFederation]:
    with RealFederation(tmp_path_factory.mktemp("faults")) as made:
        yield made
    assert not made.processes()


def rounds(fed: RealFederation) -> int:
    """How many rounds the latest run has done."""
    runs = sorted((fed.fed / "runs").glob("*"), key=lambda run: run.stat().st_ctime)
    with History.open_read(runs[-1] / "history.sqlite") as history:
        return len(history.rounds())


def assert_conforms(fed: RealFederation, results: Path, text: str, sites: tuple[str, ...]) -> None:
    learned = learned_here(parse_study(text.encode(), source="study"), NODES, {site: fed.table(site) for site in sites})
    assert_same_result(results, learned, NODES, sites)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_outlives_a_process_that_is_killed(fed, tmp_path, kind):
    text = study_text(LEARN, name=f"kill the {kind}")
    before = len(list((fed.fed / "runs").glob("*")))
    run = fed.start_run(text, tmp_path / "out")
    until(lambda: len(list((fed.fed / "runs").glob("*"))) > before and rounds(fed) >= 3)
    fed.kill(kind, "lima")
    told, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode in (0, 3), errors
    assert json.loads(told)["federation"]["attempts"] > 1
    assert_conforms(fed, tmp_path / "out", text, SITES)
    fed.wait_connected()


def test_a_run_goes_on_without_a_site_that_is_gone_for_good_if_the_study_says_so(tmp_path):
    text = study_text(CERTIFIED, 'on_missing = "continue"\ntimeout = 15')
    with RealFederation(tmp_path / "fed", sites=FOUR_SITES) as fed:
        run = fed.start_run(text, tmp_path / "out")
        until(lambda: (fed.fed / "runs").exists() and fed.find("server job") is not None)
        fed.stop_site("lima")
        told, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
        record = json.loads(told)
        assert list(record["federation"]["left_out"]) == ["lima"]
        assert record["result"]["relative_gap"] <= 1e-9
        assert_conforms(fed, tmp_path / "out", text, ("kyoto", "oslo", "quito"))
