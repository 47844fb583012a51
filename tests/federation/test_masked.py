"""Masked sums end to end: the same bits as open ones, and nothing of one site anywhere outside it."""

import json
from pathlib import Path

import numpy as np
import pytest

from silograph.engine.study import StudyResult, learn_silos
from silograph.federation.coordinator.masking import plan_exchange
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.envelope import open_message
from silograph.federation.keys import Terms, together_of
from silograph.federation.site.audit import entries
from silograph.federation.site.budget import Budget
from silograph.federation.site.data import look_at_data
from silograph.federation.site.masking import restrict
from silograph.federation.site.noise import KeptNoise, NoiseKey
from silograph.federation.site.pins import Pins
from silograph.federation.site.settings import read_site
from silograph.federation.site.spending import spent_by
from silograph.federation.study_file import pairs_of
from silograph.graph.files import read_graph
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import built_in, spec_of
from silograph.methods.oneshot import pooled_model
from silograph.protocol.codec import decode_answer, decode_subtotal, decode_task
from silograph.protocol.sums import Subtotal
from silograph.protocol.units import STANDARDISED
from testing.conformance import GIVEN, assert_conforms, digests, silo_of
from testing.consortium import NODES, SITES, Consortium, Loopback, close, write_table

METHODS = [f'method = "{name}"\n{GIVEN}' for name in built_in() if spec_of(name).one_sum]
METHODS += ['method = "oneshot"\ndegree = 3', 'method = "oneshot"\npull = 2.0\nsparsity = 0.2\n' + GIVEN]
ONESHOT = 'method = "oneshot"\ndegree = 3'
MIXED = {"kyoto": 5, "oslo": 6}
FIVE = ("bergen", "cusco", *SITES)


def replies_of(consortium: Consortium, run: CoordinatorRun, step: str = "costs") -> dict[str, bytes]:
    """What each site answers to a step of a run that is brought to its end."""
    seen: dict[str, bytes] = {}

    def tamper(site, data, service):
        reply = service(data)
        if open_message(data, consortium.trust).head.get("step") == step:
            seen[site] = open_message(reply, consortium.trust).body
        return reply

    consortium.finish(run, Loopback(consortium.services(), tamper))
    return seen


def opened(consortium: Consortium, run: CoordinatorRun) -> tuple[np.ndarray, np.ndarray]:
    """The sum that everybody learns, and how many tables are in it at each pair."""
    seen = []

    def tamper(site, data, service):
        request = open_message(data, consortium.trust)
        if request.head.get("step") == "personal":
            seen.append(decode_task(request.body))
        return service(data)

    consortium.finish(run, Loopback(consortium.services(), tamper))
    return seen[0].vector("cost"), seen[0].vector("weight")


def at_home(consortium: Consortium, run: CoordinatorRun, site: str) -> Path:
    return consortium.folder / site / "results" / run.run_id


# --- the same bits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patients", [{}, MIXED], ids=["one table each", "many tables"])
@pytest.mark.parametrize("method", METHODS)
def test_masked_is_open_is_in_process_to_the_last_bit(tmp_path, method, patients):
    masked, open_ = Consortium(tmp_path / "m", patients=patients), Consortium(tmp_path / "o", patients=patients)
    run, other = masked.masked_run(method), open_.run(method, share_graphs="false")
    results, expected = masked.finish(run), digests(open_.finish(other))
    assert_conforms(run, masked.tables, results)
    assert {name: one for name, one in digests(results).items() if name != "run.json"} == {
        name: one for name, one in expected.items() if name != "run.json"
    }
    for site in set(SITES) - set(patients):
        graphs = [
            at_home(consortium, one, site) / "silos" / site for consortium, one in ((masked, run), (open_, other))
        ]
        assert len({(graph / "graph.npz").read_bytes() for graph in graphs}) == 1


def lacking(consortium: Consortium, lacks: dict[str, tuple[int, ...]]) -> None:
    """Tables that lack some nodes."""
    for seed, site in enumerate(consortium.sites):
        had = [name for k, name in enumerate(NODES) if k not in lacks.get(site, ())]
        write_table(consortium.table(site), seed, nodes=had)


def test_sites_that_lack_nodes_give_the_same_bits_where_each_pair_is_in_enough_of_them(tmp_path):
    consortium = Consortium(tmp_path, sites=FIVE)
    lacking(consortium, {"oslo": (0, 3), "lima": (3,)})
    run = consortium.masked_run(ONESHOT, missing_nodes='"allow"')
    assert_conforms(run, consortium.tables, consortium.finish(run))


def test_a_pair_that_one_site_alone_has_is_not_opened_and_not_learned_from_at_home_either(tmp_path):
    consortium = Consortium(tmp_path, sites=FIVE, min_sites=2)
    lacking(consortium, dict.fromkeys(("bergen", "cusco"), (0,)) | {"lima": (1,), "kyoto": (1,)})
    # Nodes 0 and 1 are together at oslo alone
    run = consortium.masked_run(ONESHOT, missing_nodes='"allow"')
    cost, count = opened(consortium, run)
    results = run.folder / "results"
    pairs = pairs_of(run.study(), NODES)
    assert (count[0], cost[0]) == (0, 0)
    assert (count[1:] >= 3).all()
    silos = [silo_of(run.study(), NODES, pairs, site, path) for site, path in consortium.tables.items()]
    learned = learn_silos([restrict(silo, count > 0) for silo in silos], run.study().settings)
    assert_same_at_home(consortium, run, results, learned)


def assert_same_at_home(consortium: Consortium, run: CoordinatorRun, results: Path, learned: StudyResult) -> None:
    for site in consortium.sites:
        weights = read_graph(at_home(consortium, run, site) / "silos" / site / "graph.npz").weights
        expected = learned.graphs[site]
        assert weights.tobytes() == expected[expected > 0].tobytes()
    consensus = read_graph(results / "consensus" / "graph.npz").weights
    assert consensus.tobytes() == learned.consensus[learned.consensus > 0].tobytes()


@pytest.mark.parametrize(
    ("least", "lacks", "count_there"),
    [
        (2, {"bergen": (0,), "cusco": (0,), "kyoto": (1,)}, 0),  # at lima and oslo: each would know the other's term
        (3, {"bergen": (0,), "kyoto": (1,)}, 3),
        (4, {"bergen": (0,), "kyoto": (1,)}, 0),
    ],
)
def test_all_sites_leave_out_what_the_most_careful_of_them_asks_for(tmp_path, least, lacks, count_there):
    """If lima alone left out its term, the sum would be over fewer than the others ask for."""
    consortium = Consortium(tmp_path, sites=FIVE)
    settings = consortium.folder / "lima" / "site.toml"
    settings.write_text(settings.read_text().replace("min_sites = 2", f"min_sites = {least}"))
    lacking(consortium, lacks)
    cost, count = opened(consortium, consortium.masked_run(ONESHOT, missing_nodes='"allow"'))
    assert count[0] == count_there
    assert (cost[0] > 0) == (count_there > 0)


def test_a_node_in_too_few_sites_is_told_before_anything_is_opened(tmp_path):
    consortium = Consortium(tmp_path, sites=FIVE)
    lacking(consortium, {site: (4,) for site in FIVE if site != "oslo"})
    services = consortium.services()
    transport = Loopback(services)
    outcome = consortium.run_attempt(consortium.masked_run(ONESHOT, missing_nodes='"allow"'), transport)
    close(services)
    assert outcome.ended == "failed"
    assert "node 4" in outcome.message
    kinds = {open_message(data, consortium.trust).head["kind"] for _, data in transport.asked}
    assert kinds == {"hello", "key"}


# --- nothing of one site ----------------------------------------------------------------------------------------------


def traces_of(consortium: Consortium, run: CoordinatorRun) -> set[bytes]:
    """The bytes of each site's own numbers, as a message or a file would have them."""
    study, pairs = run.study(), pairs_of(run.study(), NODES)
    costs = [silo_of(study, NODES, pairs, site, path).cost for site, path in consortium.tables.items()]
    return {cost[k : k + 1].tobytes() for cost in costs for k in range(pairs.size)}


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "open"])
def test_no_number_of_a_site_is_in_its_messages_or_in_the_coordinators_folder(tmp_path, masked):
    """An open study shows that the search would find them."""
    consortium = Consortium(tmp_path)
    run = consortium.masked_run(ONESHOT) if masked else consortium.run(ONESHOT, share_graphs="false")
    seen = replies_of(consortium, run)
    traces = traces_of(consortium, run)
    found = {site for site, body in seen.items() if any(trace in body for trace in traces)}
    assert found == (set() if masked else set(SITES))
    kept = [path.read_bytes() for path in run.folder.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not any(trace in data for data in kept for trace in traces)


def test_all_that_a_masked_study_tells_is_one_dense_sum_and_that_it_came_back(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 5})
    run = consortium.masked_run(ONESHOT)
    seen = {"costs": replies_of(consortium, run)}
    seen["personal"] = replies_of(consortium, consortium.masked_run(ONESHOT), "personal")
    for body in seen["costs"].values():
        answer = decode_answer(body)
        assert isinstance(answer, Subtotal)
        assert not answer.reported
        assert 24 * 28 < len(body) < 24 * 28 + 400  # three limbs of each number, whatever it is
    for site, body in seen["personal"].items():
        assert len(body) < 400
        assert decode_answer(body).reported == {}, site
    left = [entry["left"] for entry in entries(consortium.folder / "oslo" / "audit.jsonl") if "left" in entry]
    assert "a masked sum over 5 tables: cost (28)" in left
    left = [entry["left"] for entry in entries(consortium.folder / "lima" / "audit.jsonl") if "left" in entry]
    assert "a masked sum: cost (28)" in left
    record = json.loads((run.folder / "results" / "run.json").read_text())
    assert all(silo[name] is None for silo in record["silos"] for name in ("n_samples", "edges", "contribution"))
    assert not any(silo["graph_shared"] for silo in record["silos"])


def test_the_bits_of_a_masked_answer_are_even(tmp_path):
    consortium = Consortium(tmp_path)
    bodies = replies_of(consortium, consortium.masked_run(ONESHOT)).values()
    limbs = np.concatenate([decode_subtotal(body).parts["cost"] for body in bodies])
    bits = np.unpackbits(np.ascontiguousarray(limbs).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)


# --- with noise -------------------------------------------------------------------------------------------------------


def noisy_terms(consortium: Consortium, run: CoordinatorRun) -> list[np.ndarray]:
    """What each site has drawn and kept, which nobody else ever has."""
    homes = [consortium.folder / site for site in consortium.sites]
    versions = [look_at_data(read_site(home), home).version for home in homes]
    kept = [KeptNoise(home / "noise") for home in homes]
    about = [(run.study(), version, run.sites, run.nodes) for version in versions]
    together = together_of([one.data_name(NoiseKey.of(*key)) for one, key in zip(kept, about, strict=True)])
    return [
        one.get(NoiseKey.of(*key, together), lambda: pytest.fail("there is none"))["cost"]
        for one, key in zip(kept, about, strict=True)
    ]


@pytest.mark.parametrize("rows", ['"unit"', "30.0"])
@pytest.mark.parametrize("patients", [{}, MIXED], ids=["one table each", "many tables"])
def test_a_masked_sum_with_noise_is_the_sum_of_the_noisy_terms_the_same_in_every_run(tmp_path, patients, rows):
    consortium = Consortium(tmp_path, patients=patients)
    public = f"centres = {[0.0] * 8}\nscales = {[0.01] * 8}\n"
    noise = f"epsilon = 4\ndelta = 1e-5\nmin_samples = 20\nrows = {rows}\n{public}"
    runs = [consortium.masked_run(ONESHOT, noise, standardize="true") for _ in range(2)]
    consensus = [(consortium.finish(run) / "consensus" / "graph.npz").read_bytes() for run in runs]
    assert consensus[0] == consensus[1]
    total = np.maximum(np.sum(noisy_terms(consortium, runs[0]), axis=0), 0.0)
    due = pooled_model(runs[0].study().settings, total, Pairs.all(8), len(consortium.tables)).pooled
    found = read_graph(runs[0].results / "consensus" / "graph.npz").weights
    assert found == pytest.approx(due[due > 0], rel=1e-9)


def test_with_noise_it_is_the_length_of_rows_that_bounds_the_sum_and_no_unit_variance(tmp_path):
    consortium = Consortium(tmp_path)
    for seed, site in enumerate(SITES):
        write_table(consortium.table(site), seed, n_samples=2000)
    public = f"centres = {[0.0] * 8}\nscales = {[0.01] * 8}\n"
    noise = f"epsilon = 8\ndelta = 1e-5\nmin_samples = 2000\nrows = 30.0\n{public}"
    run = consortium.masked_run(ONESHOT, noise, standardize="true")
    consortium.finish(run)
    keys = plan_exchange(run.study(), terms_of(run), 8, file=run.keys, trust=consortium.trust)
    total = np.sum(noisy_terms(consortium, run), axis=0)
    assert total.max() > 3 * STANDARDISED + keys.noise  # else this would show nothing
    assert total.max() < 3 * 2 * 30**2 + keys.noise


def terms_of(run: CoordinatorRun) -> Terms:
    return Terms.of(run.study(), run.run_id, run.sites, run.nodes, 28)


def test_all_sites_draw_anew_and_pay_once_the_table_of_one_of_them_has_changed(tmp_path):
    """Shares that stayed would cancel in the difference of the two sums, which then had one site's share alone."""
    consortium = Consortium(tmp_path)
    noise = "epsilon = 4\ndelta = 1e-5\nmin_samples = 20\n"
    consortium.finish(consortium.masked_run(ONESHOT, noise))
    consortium.finish(consortium.masked_run(ONESHOT, noise))
    assert [len(Budget(tmp_path / site).openings()) for site in SITES] == [1, 1, 1]
    rows = consortium.table("oslo").read_text().splitlines()
    consortium.table("oslo").write_text("\n".join(rows[:-1]) + "\n")  # a patient has withdrawn
    consortium.finish(consortium.masked_run(ONESHOT, noise))
    for site in SITES:
        first, second = Budget(tmp_path / site).openings()
        assert first.draw != second.draw
        assert spent_by([first, second]).rho == 2 * first.rho


# --- who takes part ---------------------------------------------------------------------------------------------------


def test_a_run_of_other_sites_than_the_studys_is_refused_before_anything_is_sent(tmp_path):
    consortium = Consortium(tmp_path, sites=FIVE)
    run = consortium.masked_run(ONESHOT).leave_out({"oslo": "late"})
    transport = Loopback({})
    outcome = consortium.run_attempt(run, transport)
    assert outcome.ended == "failed"
    assert "all sites of the study" in outcome.message
    assert not transport.asked


@pytest.mark.parametrize("how", ["not pinned", "another key", "a damaged file"])
def test_a_site_refuses_a_study_whose_keys_it_has_not_pinned_and_its_log_names_the_site(tmp_path, how):
    consortium = Consortium(tmp_path)
    run = consortium.masked_run(ONESHOT)
    if how == "not pinned":
        Pins(consortium.folder / "lima").remove("oslo", by="the engineer")
    elif how == "a damaged file":
        (consortium.folder / "lima" / "pins.json").write_text("{}")
    else:
        consortium.pin("lima", oslo="0" * 64)
    services = consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert [(trouble["site"], trouble["code"]) for trouble in outcome.troubles] == [("lima", "pins")]
    last = list(entries(consortium.folder / "lima" / "audit.jsonl"))[-1]
    assert last["code"] == "pins"
    assert ("pins.json: is damaged" if how == "a damaged file" else "oslo: ") in str(last["detail"])
