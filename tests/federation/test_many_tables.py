"""Sites that hold many silos: what leaves is their exact sum, and the run ends as if all were in one place."""

import json
import random
import signal
from pathlib import Path

import numpy as np
import pytest

from silograph import learn_files, read_run
from silograph.engine.checkpoint import Checkpoint
from silograph.federation.coordinator.run import open_run
from silograph.federation.envelope import open_message
from silograph.federation.site.audit import entries, verify
from silograph.protocol.codec import decode_subtotal
from testing.conformance import EXACT, GIVEN, ONESHOT, assert_conforms, digests, every_method, learned_here
from testing.consortium import NODES, SERVER, SITES, Consortium, Loopback, as_data, close, conduct_elsewhere, processes

PATIENTS = {"kyoto": 5, "lima": 7, "oslo": 6}
MIXED = {"kyoto": 5, "oslo": 6}  # lima has one table


@every_method
def test_every_method_gives_the_same_bits_as_with_all_patients_in_one_process(tmp_path, method):
    consortium = Consortium(tmp_path, patients=MIXED)
    run = consortium.run(method)
    assert_conforms(run, consortium.tables, consortium.finish(run))


def test_neither_the_grouping_into_sites_nor_the_names_of_silos_change_a_bit(tmp_path):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run = consortium.run(EXACT)
    results = consortium.finish(run)
    renamed = {f"x{k}": path for k, path in enumerate(reversed(consortium.tables.values()))}
    learned = learned_here(run.study(), NODES, renamed)
    with np.load(results / "consensus" / "graph.npz") as kept:
        assert kept["weights"].tobytes() == learned.consensus[learned.consensus > 0].tobytes()


@pytest.mark.parametrize("form", ["a pattern", "a list"])
def test_a_pattern_and_a_list_name_the_same_tables_as_their_folder(tmp_path, form):
    folder = Consortium(tmp_path / "folder", patients=PATIENTS)
    other = Consortium(tmp_path / "other", patients=PATIENTS)
    for site, number in PATIENTS.items():
        names = [f"tables/private-{site}-{k}.csv" for k in range(number)]
        settings = other.folder / site / "site.toml"
        data = json.dumps("tables/*.csv" if form == "a pattern" else names)
        settings.write_text(settings.read_text().replace('data = "tables"', f"data = {data}"))
    assert digests(folder.finish(folder.run(EXACT))) == digests(other.finish(other.run(EXACT)))


# --- what leaves ------------------------------------------------------------------------------------------------------


def test_no_name_of_a_patient_is_in_any_message_or_in_the_coordinators_folder(tmp_path):
    consortium, seen = Consortium(tmp_path, patients=PATIENTS), []

    def tamper(site, data, service):
        reply = service(data)
        seen.extend([data, reply])
        return reply

    run = consortium.run(EXACT)
    consortium.finish(run, Loopback(consortium.services(), tamper))
    for path in (tmp_path / "runs").rglob("*"):
        assert "private" not in path.name
        seen.append(path.read_bytes() if path.is_file() else b"")
    assert len(seen) > 60
    assert not any(b"private" in one for one in seen)


def test_of_several_patients_the_sum_their_number_and_their_samples_together_are_all_that_is_told(tmp_path):
    consortium = Consortium(tmp_path, patients=MIXED)
    record = json.loads((consortium.finish(consortium.run(EXACT)) / "run.json").read_text())
    kyoto, lima, oslo = record["silos"]
    assert (kyoto["n_silos"], lima["n_silos"], oslo["n_silos"]) == (5, None, 6)
    assert (kyoto["n_samples"], oslo["n_samples"]) == (
        sum(20 + 3 * k for k in range(5)),
        sum(20 + 3 * k for k in range(6)),
    )
    assert lima["contribution"] is not None
    assert all(silo[name] is None for silo in (kyoto, oslo) for name in ("edges", "contribution", "mean_degree"))
    assert [path.name for path in (consortium.folder / "runs").glob("*/results/silos/*")] == ["lima"]


def test_a_site_that_reports_nothing_tells_no_samples(tmp_path):
    consortium = Consortium(tmp_path, patients=PATIENTS, report=False)
    record = json.loads((consortium.finish(consortium.run(EXACT)) / "run.json").read_text())
    assert [silo["n_samples"] for silo in record["silos"]] == [None] * 3


def test_typical_sums_take_sixteen_bytes_a_number_and_are_logged_without_numbers(tmp_path):
    consortium, sizes = Consortium(tmp_path, patients=PATIENTS), []

    def tamper(site, data, service):
        reply = service(data)
        body = open_message(reply, consortium.trust).body
        if open_message(data, consortium.trust).head.get("step") == "costs":
            assert decode_subtotal(body).n_silos == PATIENTS[site]
            sizes.append(len(body))
        return reply

    consortium.finish(consortium.run(EXACT), Loopback(consortium.services(), tamper))
    assert len(sizes) == 3
    assert all(16 * 28 < size < 16 * 28 + 300 for size in sizes)
    left = [entry.get("left") for entry in entries(consortium.folder / "lima" / "audit.jsonl")]
    assert "the sum over 7 tables: cost (28)" in left
    assert "that it is ready, with 7 tables" in left


# --- at home ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [EXACT, ONESHOT, 'method = "algorithm1"\nrounds = 3\n' + GIVEN])
def test_a_site_has_the_folder_of_a_run_with_the_graph_and_contribution_of_each_patient(tmp_path, method):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run = consortium.run(method)
    results = consortium.finish(run)
    learned, result = learned_here(run.study(), NODES, consortium.tables), read_run(results).result
    told = (result.objective, result.relative_gap, result.converged)
    for site, number in PATIENTS.items():
        home = read_run(consortium.folder / site / "results" / run.run_id)
        assert [silo.name for silo in home.silos] == [f"private-{site}-{k}" for k in range(number)]
        for silo in home.silos:
            contribution = learned.contributions[silo.name]
            assert silo.contribution == (contribution if np.isfinite(contribution) else None)
            expected = learned.graphs[silo.name]
            assert home.graphs[silo.name].weights.tobytes() == expected[expected > 0].tobytes()
        assert (home.result.alpha, home.result.rho) == (learned.alpha, learned.rho)
        assert (home.result.objective, home.result.relative_gap, home.converged) == told
        consensus = consortium.folder / site / "results" / run.run_id / "consensus" / "graph.npz"
        assert consensus.read_bytes() == (results / "consensus" / "graph.npz").read_bytes()


# --- kill -9 ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """A process ends here; no code of it may hold this up."""


@pytest.mark.parametrize("method", [EXACT, ONESHOT], ids=["exact", "oneshot"])
def test_a_run_cut_short_before_and_after_every_answer_of_every_site_ends_in_the_same_bits(tmp_path, method):
    undisturbed = Consortium(tmp_path / "undisturbed", patients=MIXED)
    expected = digests(undisturbed.finish(undisturbed.run(method)))
    consortium = Consortium(tmp_path / "cut", patients=MIXED)
    run, met, cuts = consortium.run(method), set(), 0

    def cut_once(*place) -> None:
        if place not in met:
            met.add(place)
            raise Killed

    def tamper(site, data, service):
        head = open_message(data, consortium.trust).head
        place = (site, head["kind"], head.get("stage"), head.get("round"))
        cut_once("before", *place)
        reply = service(data)
        cut_once("after", *place)
        return reply

    while True:
        services = consortium.services()
        try:
            outcome = consortium.run_attempt(open_run(run.folder), Loopback(services, tamper))
        except Killed:
            cuts += 1
            continue
        finally:
            close(services)
        break
    assert outcome.ended == "done"
    assert len(met) >= 2 * 3 * 4  # the greeting, two rounds or more, the end; at three sites
    assert cuts >= 8
    assert digests(run.folder / "results") == expected
    assert all(verify(consortium.folder / site / "audit.jsonl").problem is None for site in SITES)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_site_killed_as_its_patients_states_are_written_answers_the_same(tmp_path, monkeypatch, after):
    undisturbed = Consortium(tmp_path / "undisturbed", patients=MIXED)
    expected = digests(undisturbed.finish(undisturbed.run(EXACT)))
    consortium = Consortium(tmp_path / "cut", patients=MIXED)
    run, save, met = consortium.run(EXACT), Checkpoint.save, set()

    def cut(self: Checkpoint, tree: dict) -> None:
        place = (self._folder, self._round)
        is_new = "answer" in tree and place not in met
        met.add(place)
        if is_new and not after:
            raise Killed
        save(self, tree)
        if is_new:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", cut)
    cuts = 0
    while True:
        services = consortium.services()
        try:
            assert consortium.run_attempt(open_run(run.folder), Loopback(services)).ended == "done"
            break
        except Killed:
            cuts += 1
        finally:
            close(services)
    assert cuts >= 7
    assert digests(run.folder / "results") == expected


def test_processes_killed_at_any_moment_cost_no_bit(tmp_path):
    undisturbed = Consortium(tmp_path / "undisturbed", patients=MIXED)
    long = EXACT.replace("rounds = 4", "rounds = 14\ntol = 1e-13")
    expected = digests(undisturbed.finish(undisturbed.run(long)))
    consortium, rng, killed = Consortium(tmp_path / "killed", patients=MIXED), random.Random(0), 0
    run = consortium.run(long)
    signers = {name: as_data(one) for name, one in ({SERVER: consortium.server} | consortium.signers).items()}
    for _ in range(6):
        here, there = processes().Pipe()
        arguments = (consortium.folder, run.folder, consortium.authority.root, signers, there)
        process = processes().Process(target=conduct_elsewhere, args=arguments)
        process.start()
        assert here.recv() == "begun"
        process.join(rng.uniform(0.0, 0.5))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    assert killed >= 3
    assert digests(consortium.finish(open_run(run.folder))) == expected


# --- limits -----------------------------------------------------------------------------------------------------------


def ended(consortium: Consortium, learn: str = EXACT) -> tuple[str, str]:
    """How an attempt at a run ends: well, or by which trouble."""
    services = consortium.services()
    outcome = consortium.run_attempt(
        consortium.run(learn, policy='on_missing = "stop"\ntimeout = 0.1'), Loopback(services)
    )
    close(services)
    detail = [
        str(entry["detail"]) for entry in entries(consortium.folder / "oslo" / "audit.jsonl") if "detail" in entry
    ]
    return outcome.ended, detail[-1] if outcome.ended != "done" else ""


def change(consortium: Consortium, *, add: int = 0, remove: int = 0) -> None:
    there = sorted((consortium.folder / "oslo" / "tables").glob("*.csv"))
    for number in range(add):
        consortium.add_patient("oslo", 50 + len(there) + number)
    for path in there[:remove]:
        path.unlink()


@pytest.mark.parametrize(
    ("add", "remove", "allowed"),
    [
        (0, 0, True),
        (1, 0, False),
        (4, 0, False),
        (5, 0, True),
        (0, 1, False),
        (5, 1, False),
        (0, 5, True),
        (5, 5, True),
    ],
)
def test_between_two_versions_no_patient_or_at_least_min_tables_come_and_go(
    tmp_path, monkeypatch, add, remove, allowed
):
    monkeypatch.setattr("silograph.federation.coordinator.request.COMING_UP", 0.1)
    consortium = Consortium(tmp_path, patients={"oslo": 12, "lima": 5})
    assert ended(consortium) == ("done", "")
    change(consortium, add=add, remove=remove)
    how, detail = ended(consortium)
    assert (how == "done") == allowed, detail
    assert allowed or "1 table by themselves" in detail or "4 tables by themselves" in detail


def test_a_row_more_of_one_patient_is_another_table(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.federation.coordinator.request.COMING_UP", 0.1)
    consortium = Consortium(tmp_path, patients={"oslo": 12})
    assert ended(consortium) == ("done", "")
    path = consortium.patient("oslo", 3)
    path.write_text(path.read_text() + ",".join(["0.5"] * len(NODES)) + "\n")
    how, detail = ended(consortium)
    assert how == "trouble"
    assert "1 table by themselves" in detail


def test_a_patient_in_another_format_row_order_and_name_is_the_same_table(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 6})
    assert ended(consortium) == ("done", "")
    path = consortium.patient("oslo", 3)
    header, *rows = path.read_text().splitlines()
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows])[::-1]
    np.savez(path.with_name("renamed.npz"), signals=values, names=np.array(header.split(",")))
    path.unlink()
    path.with_name("renamed.npz").unlink()
    text = "\n".join(["\t".join(header.split(",")), *("\t".join(map(repr, row)) for row in values.tolist())])
    path.with_name("renamed.tsv").write_text(text + "\n")
    assert ended(consortium) == ("done", "")


def test_one_table_after_several_or_several_after_one_need_a_persons_word(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.federation.coordinator.request.COMING_UP", 0.1)
    consortium = Consortium(tmp_path, patients={"oslo": 6})
    assert ended(consortium) == ("done", "")
    settings = consortium.folder / "oslo" / "site.toml"
    text = settings.read_text()
    settings.write_text(text.replace('data = "tables"', 'data = "tables/private-oslo-5.csv"'))
    how, detail = ended(consortium)
    assert how == "trouble"
    assert "site.toml named several tables, now it names one" in detail


def test_fewer_tables_than_the_site_allows_are_refused_even_if_it_is_one(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 4})
    assert ended(consortium)[1] == "has 4 different tables, the least is 5"
    other = Consortium(tmp_path / "other", patients={"oslo": 1}, min_tables=1)
    assert ended(other) == ("done", "")


def test_rows_are_counted_of_all_tables_together(tmp_path):
    n_rows = sum(20 + 3 * k for k in range(6))
    consortium = Consortium(tmp_path, sites=("oslo", "lima"), patients={"oslo": 6, "lima": 6}, min_samples=n_rows)
    assert ended(consortium) == ("done", "")
    fewer = Consortium(
        tmp_path / "fewer", sites=("oslo", "lima"), patients={"oslo": 6, "lima": 6}, min_samples=n_rows + 1
    )
    assert ended(fewer)[1] == f"6 tables: has {n_rows} samples, the least is {n_rows + 1}"


@pytest.mark.parametrize("how", ["added", "removed", "changed"])
def test_a_patient_that_comes_goes_or_changes_during_a_run_stops_it(tmp_path, how):
    consortium = Consortium(tmp_path, patients=PATIENTS)

    def tamper(site, data, service):
        head = open_message(data, consortium.trust).head
        if (site, head.get("stage"), head.get("round")) == ("oslo", "learn", 2):
            path = consortium.patient("oslo", 2)
            if how == "added":
                consortium.add_patient("oslo", 40)
            elif how == "removed":
                path.unlink()
            else:
                path.write_text(path.read_text().replace("0.", "0.0", 1))
        return service(data)

    services = consortium.services()
    outcome = consortium.run_attempt(consortium.run(EXACT), Loopback(services, tamper))
    close(services)
    assert (outcome.ended, outcome.troubles[0]["site"]) == ("trouble", "oslo")
    assert list(entries(consortium.folder / "oslo" / "audit.jsonl"))[-1]["code"] == "data-changed"


def test_two_tables_of_one_name_are_told(tmp_path):
    consortium = Consortium(tmp_path, patients={"oslo": 6})
    settings, more = consortium.folder / "oslo" / "site.toml", consortium.folder / "oslo" / "more"
    more.mkdir()
    (more / "private-oslo-1.csv").write_bytes(consortium.patient("oslo", 1).read_bytes())
    settings.write_text(settings.read_text().replace('data = "tables"', 'data = ["tables", "more"]'))
    assert "got 'private-oslo-1' twice. Rename one of them" in ended(consortium)[1]


def test_learning_from_the_sites_folders_in_one_process_gives_their_consensus(tmp_path):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    results = consortium.finish(consortium.run(EXACT))
    learned = learn_files(
        list(consortium.tables.values()), method="exact", rounds=4, alpha=0.5, beta=0.25, coupling=0.5
    )
    there = read_run(results.parent)
    assert there.consensus_graph.weights.tobytes() == learned.consensus_graph.weights.tobytes()
    assert there.result.objective == learned.result.objective
    assert Path(results, "history.csv").read_text().count("\n") == 5
