"""A federation that really runs, with masked sums: the bits of one place, many tables per site, processes killed."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph import learn_files, read_run
from silograph.federation.site.audit import entries
from testing.real_federation import RealFederation
from testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

PATIENTS = {"kyoto": 5, "oslo": 6}  # lima has one table
ONESHOT = 'method = "oneshot"\ndegree = 3'


@pytest.fixture(scope="module")
def fed(tmp_path_factory):
    with RealFederation(tmp_path_factory.mktemp("fed"), patients=PATIENTS) as made:
        yield made


def tables(fed: RealFederation) -> list[Path]:
    several = [path for site in PATIENTS for path in sorted(fed.table(site).glob("*.csv"))]
    return [*several, fed.table("lima")]


def assert_as_in_one_place(fed: RealFederation, out: Path) -> None:
    here, there = learn_files(tables(fed), method="oneshot", degree=3), read_run(out)
    assert there.consensus_graph.weights.tobytes() == here.consensus_graph.weights.tobytes()
    assert there.result.objective == here.result.objective
    assert not there.graphs
    run = json.loads((out / "run.json").read_text())["federation"]["run"]
    for site in fed.sites:
        (folder,) = (fed.home(site) / "results").glob(f"{run}.*")
        if site in PATIENTS:
            for name, graph in read_run(folder).graphs.items():
                assert graph.weights.tobytes() == here.graphs[name].weights.tobytes()


def masked_answers(fed: RealFederation) -> dict[tuple[str, str], set[str]]:
    """By site and generation the digests of the masked sums that left, as the sites' logs have them."""
    found = defaultdict(set)
    for site in fed.sites:
        for entry in entries(fed.home(site) / "audit.jsonl"):
            if str(entry.get("left", "")).startswith("a masked sum"):
                found[site, str(entry["run"])].add(str(entry["sha256"]))
    return found


def test_a_masked_study_on_real_sites_with_many_tables_ends_in_the_bits_of_one_place(fed, tmp_path):
    fed.run(fed.masked_text(ONESHOT), tmp_path / "run")
    assert_as_in_one_place(fed, tmp_path / "run")
    assert all(len(sent) == 1 for sent in masked_answers(fed).values())


@pytest.mark.parametrize(("kind", "site"), [("site job", "lima"), ("server job", None)], ids=["site", "server"])
@pytest.mark.parametrize("moment", ["its key for this run, signed", "that it has all sites' keys"], ids=["key", "keys"])
def test_a_process_killed_amid_the_exchange_costs_no_bit_and_no_mask_hides_two_answers(
    fed, tmp_path, kind, site, moment
):
    before = sum(entry.get("left") == moment for entry in entries(fed.home("lima") / "audit.jsonl"))
    process = fed.start_run(fed.masked_text(ONESHOT), tmp_path / "run")
    eventually(
        lambda: sum(one.get("left") == moment for one in entries(fed.home("lima") / "audit.jsonl")) > before, every=0.02
    )
    fed.kill(kind, site)
    _, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaints
    assert_as_in_one_place(fed, tmp_path / "run")
    assert all(len(sent) == 1 for sent in masked_answers(fed).values())
