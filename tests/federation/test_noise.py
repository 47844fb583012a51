"""Studies with epsilon and open sums between sites: what leaves has noise, the same in every run."""

import json
from pathlib import Path

import numpy as np
import pytest

from silograph import read_run
from silograph.federation.refusals import REASONS
from silograph.federation.site.budget import Budget
from silograph.federation.site.data import look_at_data
from silograph.federation.site.noise import KeptNoise, NoiseKey, plan_at_site
from silograph.federation.site.settings import read_site
from silograph.federation.site.silos import read_silos
from silograph.federation.site.spending import spent_by
from silograph.graph.pairs import Pairs
from silograph.methods.oneshot import pooled_model
from testing.consortium import NODES, SITES, Consortium, Loopback, close, write_table

EPSILON = "[privacy]\nepsilon = 4\ndelta = 1e-5\nmin_samples = 20\n"
ONESHOT, EXACT = 'method = "oneshot"\ndegree = 3', 'method = "exact"\ndegree = 3'
HOME = {"share_graphs": "false"}


def kept_at(consortium: Consortium, run, site: str) -> dict[str, np.ndarray]:
    home = consortium.folder / site
    version = look_at_data(read_site(home), home).version
    key = NoiseKey.of(run.study(), version, run.sites, NODES)
    return dict(KeptNoise(home / "noise").get(key, lambda: pytest.fail("there is none")))


def exact_sum(consortium: Consortium, run, site: str) -> np.ndarray:
    settings, home = read_site(consortium.folder / site), consortium.folder / site
    return np.sum(
        [silo.cost for silo in read_silos(settings, look_at_data(settings, home), run.study(), NODES).silos], 0
    )


def weights(results: Path) -> bytes:
    with np.load(results / "consensus" / "graph.npz") as graph:
        return graph["weights"].tobytes()


def refusals(consortium: Consortium, run) -> str:
    services = consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert outcome.ended != "done"
    return str(outcome)


@pytest.mark.parametrize("patients", [{}, {"kyoto": 5, "oslo": 6}])
def test_the_consensus_is_made_of_the_sites_noisy_sums_and_of_nothing_else(tmp_path, patients):
    consortium = Consortium(tmp_path, patients=patients)
    run = consortium.run(ONESHOT, policy=EPSILON, **HOME)
    results, pairs = consortium.finish(run), Pairs.all(len(NODES))
    terms = {site: kept_at(consortium, run, site)["cost"] for site in SITES}
    n_silos = len(consortium.tables)
    total = np.maximum(np.sum(list(terms.values()), axis=0), 0.0)
    due = pooled_model(run.study().settings, total, pairs, n_silos).pooled
    with np.load(results / "consensus" / "graph.npz") as graph:
        assert graph["weights"] == pytest.approx(due[due > 0], rel=1e-9)
    noise = plan_at_site(run.study(), pairs, 3, n_silos)
    for site, term in terms.items():
        off = (term - exact_sum(consortium, run, site)) / noise.cost_sigma
        assert 0.3 < np.sqrt((off**2).mean()) < 2.5  # 28 numbers of variance 1, all dependent


def test_the_same_study_again_has_the_same_bits_and_another_study_has_other_noise(tmp_path):
    consortium = Consortium(tmp_path)
    first = consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    again = consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    assert weights(first) == weights(again)
    assert len(list((tmp_path / "lima" / "noise").iterdir())) == 2  # and the lock
    other = consortium.finish(consortium.run(ONESHOT, policy=EPSILON.replace("4", "4.5"), **HOME))
    assert weights(other) != weights(first)
    assert len(list((tmp_path / "lima" / "noise").iterdir())) == 3


def test_every_silo_s_own_costs_carry_noise_where_a_method_opens_many_sums(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 5})
    run = consortium.run(EXACT, policy=EPSILON)
    results = consortium.finish(run)
    assert set(kept_at(consortium, run, "lima")) == {"lima"}
    assert set(kept_at(consortium, run, "oslo")) == {f"private-oslo-{k}" for k in range(5)}
    own = read_silos(
        read_site(tmp_path / "lima"), look_at_data(read_site(tmp_path / "lima"), tmp_path / "lima"), run.study(), NODES
    )
    assert (kept_at(consortium, run, "lima")["lima"] != own.silos[0].cost).all()
    again = consortium.finish(consortium.run(EXACT, policy=EPSILON))
    assert weights(results) == weights(again)
    assert read_run(results).record.privacy.graphs_inside


def test_results_say_what_the_guarantee_holds_for(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 5})
    results = consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    told = read_run(results).record.privacy
    assert (told.epsilon, told.unit, told.min_samples, told.masked) == (4, "row", 20, False)
    for site in SITES:
        (home,) = (tmp_path / site / "results").iterdir()
        about = json.loads((home / "about.json").read_text())["privacy"]
        assert not about["graphs_inside"]
        assert "outside the guarantee" in about["says"]


def test_a_damaged_file_of_noise_ends_the_run_and_is_not_drawn_anew(tmp_path):
    consortium = Consortium(tmp_path)
    consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    (path,) = (one for one in (tmp_path / "lima" / "noise").iterdir() if one.name != "lock")
    path.write_bytes(path.read_bytes()[:-1])
    assert REASONS["internal"] in refusals(consortium, consortium.run(ONESHOT, policy=EPSILON, **HOME))
    assert "damaged" in (tmp_path / "lima" / "audit.jsonl").read_text()


def test_a_table_with_fewer_rows_than_noise_was_measured_for_is_refused(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.run(ONESHOT, policy=EPSILON.replace("20", "41"), **HOME)
    assert REASONS["samples"] in refusals(consortium, run)


def test_constant_nodes_and_wild_units_are_no_reason_to_refuse(tmp_path):
    consortium = Consortium(tmp_path)
    values = write_table(consortium.table("lima"), 7)
    for site, changed in (("lima", values * 1e-60), ("oslo", values * [1, 0, 0, 1, 1, 1, 1, 1])):
        rows = [",".join(map(repr, row)) for row in changed.tolist()]
        consortium.table(site).write_text("\n".join([",".join(NODES), *rows]))
    consortium.table("kyoto").write_text("\n".join([",".join(NODES), *["1,1,1,1,1,1,1,1"] * 30]))
    consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))


def test_public_centres_and_scales_come_with_the_study(tmp_path):
    consortium = Consortium(tmp_path)
    numbers = f"centres = {[0.5] * 8}\nscales = {[2.0] * 8}\n"
    run = consortium.run(ONESHOT, policy=EPSILON + numbers, standardize="true", **HOME)
    plain = consortium.run(ONESHOT, policy=EPSILON, **HOME)
    consortium.finish(run)
    # One centre and one scale for all nodes change no unit row
    assert exact_sum(consortium, run, "lima") == pytest.approx(exact_sum(consortium, plain, "lima"), abs=1e-6)


def test_too_few_public_numbers_are_refused(tmp_path):
    consortium = Consortium(tmp_path)
    numbers = "centres = [0.0]\nscales = [1.0]\n"
    run = consortium.run(ONESHOT, policy=EPSILON + numbers, standardize="true", **HOME)
    assert REASONS["data"] in refusals(consortium, run)


def test_noise_that_was_lost_is_drawn_anew_and_paid_for_anew(tmp_path):
    consortium = Consortium(tmp_path)
    home = tmp_path / "lima"
    consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    assert len(Budget(home).openings()) == 1
    for path in (home / "noise").iterdir():
        path.unlink()
    consortium.finish(consortium.run(ONESHOT, policy=EPSILON, **HOME))
    first, second = Budget(home).openings()
    assert first.draw != second.draw
    assert spent_by([first, second]).rho == 2 * first.rho
