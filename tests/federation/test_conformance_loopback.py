"""One engine equals another: the same study on the same tables ends in the same bits, however bytes travel."""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from silograph.data.readers import text
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.runs.reader import read_run
from testing.conformance import ALGORITHM1, DITTO, EXACT, assert_conforms, digests, every_method, learned_here
from testing.consortium import NODES, SITES, Consortium, Loopback, close, write_table

# How an engine brings a run to its end, and where the results are then
ENGINES: dict[str, Callable[[Consortium, CoordinatorRun], Path]] = {"loopback": Consortium.finish}


@pytest.fixture(params=ENGINES)
def engine(request) -> Callable[[Consortium, CoordinatorRun], Path]:
    return ENGINES[request.param]


@every_method
def test_every_method_gives_the_same_bits_as_in_one_process(tmp_path, engine, method):
    consortium = Consortium(tmp_path)
    run = consortium.run(method)
    assert_conforms(run, consortium.tables, engine(consortium, run))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(EXACT, id="exact"),
        pytest.param(ALGORITHM1, id="algorithm1", marks=pytest.mark.slow),
        pytest.param(DITTO, id="ditto", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "extra",
    [
        {"report": "false"},
        {"share_graphs": "false"},
        {"report": "false", "share_graphs": "false"},
        {"standardize": "true"},
        {"transform": '"ranks"'},
        {"forbid": '[["node 0", "node 1"], ["node 2", "node 7"]]'},
        {
            "allow": str([[f"node {i}", f"node {j}"] for i in range(8) for j in range(i) if (i + j) % 3]).replace(
                "'", '"'
            )
        },
    ],
    ids=" ".join,
)
def test_what_a_study_says_beside_its_method_changes_no_bit_either(tmp_path, engine, method, extra):
    consortium = Consortium(tmp_path)
    learn = "".join(f"\n{key} = {extra[key]}" for key in extra if key == "report")
    run = consortium.run(method + learn, **{key: value for key, value in extra.items() if key != "report"})
    assert_conforms(run, consortium.tables, engine(consortium, run))


def test_a_site_that_tells_nothing_of_itself_changes_nothing_for_the_others(tmp_path, engine):
    open_, closed = Consortium(tmp_path / "open"), Consortium(tmp_path / "closed", sites=SITES[:2])
    closed.sites = SITES
    closed.signers["oslo"] = closed.authority.signer("oslo")
    closed.make_site("oslo", 2, report=False, share_graph=False)
    known, silent = (digests(engine(one, one.run(EXACT))) for one in (open_, closed))
    same = [name for name in known if not name.startswith("silos/oslo") and name != "run.json"]
    assert {name: silent[name] for name in same} == {name: known[name] for name in same}
    assert not [name for name in silent if "oslo" in name and name != "run.json"]


@pytest.mark.parametrize("standardize", ["false", "true"])
def test_a_site_may_have_its_columns_in_any_order(tmp_path, engine, rng, standardize):
    straight, shuffled = Consortium(tmp_path / "straight"), Consortium(tmp_path / "shuffled")
    for seed, site in list(enumerate(SITES))[1:]:
        write_table(shuffled.table(site), seed, order=rng.permutation(len(NODES)).tolist())
    runs = [one.run(EXACT, standardize=standardize) for one in (straight, shuffled)]
    results = [engine(one, run) for one, run in zip((straight, shuffled), runs, strict=True)]
    assert digests(results[0]) == digests(results[1])
    assert_conforms(runs[1], shuffled.tables, results[1])


@pytest.mark.parametrize(
    "method", [EXACT, 'method = "oneshot"\ndegree = 3', 'method = "oneshot"\nsums = 3\npull = 1.0']
)
def test_sites_may_lack_nodes(tmp_path, engine, method):
    consortium = Consortium(tmp_path)
    write_table(consortium.table("lima"), 1, order=[7, 0, 1, 2, 5, 4])
    write_table(consortium.table("oslo"), 2, order=[0, 1, 2, 3, 4, 5, 6])
    run = consortium.run(method, missing_nodes='"allow"')
    results = engine(consortium, run)
    assert_conforms(run, consortium.tables, results)
    record = read_run(results)
    assert [silo.missing_nodes for silo in record.silos] == [(), ("node 3", "node 6"), ("node 7",)]
    assert record.graphs["lima"].names == tuple(NODES[k] for k in (0, 1, 2, 4, 5, 7))
    assert "are in one silo alone (kyoto 2)" in record.warnings["nodes"]


@pytest.mark.parametrize("missing", ["rows", "pairs"])
@pytest.mark.parametrize("method", [EXACT, 'method = "oneshot"\ndegree = 3'])
def test_sites_treat_gaps_as_the_study_says(tmp_path, engine, missing, method):
    consortium = Consortium(tmp_path)
    table = pd.read_csv(consortium.table("lima"))
    table.iloc[3:9, 2] = table.iloc[7:12, 5] = np.nan
    table.to_csv(consortium.table("lima"), index=False, na_rep="n/a")
    scaled = {"standardize": "true"} if missing == "rows" else {"transform": '"ranks"'}
    run = consortium.run(method, missing=f'"{missing}"', **scaled)
    results = engine(consortium, run)
    assert_conforms(run, consortium.tables, results)
    if method == EXACT:  # one-shot tells nothing of itself
        n_samples = {silo.name: silo.n_samples for silo in read_run(results).silos}
        assert n_samples["lima"] == len(table) - (9 if missing == "rows" else 0)


def test_a_site_leaves_out_the_rows_that_it_flagged(tmp_path, engine):
    flagged, cleaned = Consortium(tmp_path / "flagged", keep_rows="good"), Consortium(tmp_path / "cleaned")
    for seed, site in enumerate(SITES):
        table = pd.read_csv(cleaned.table(site))
        good = np.arange(len(table)) % 4 != seed
        table.assign(good=good).to_csv(flagged.table(site), index=False)
        table[good].to_csv(cleaned.table(site), index=False)
    results = [digests(engine(one, one.run(EXACT))) for one in (flagged, cleaned)]
    assert results[0] == results[1]


def test_a_site_with_gaps_refuses_a_study_that_says_nothing_of_them(tmp_path):
    consortium = Consortium(tmp_path)
    table = pd.read_csv(consortium.table("lima"))
    table.iloc[3, 2] = np.nan
    table.to_csv(consortium.table("lima"), index=False)
    transport = Loopback(consortium.services())
    outcome = consortium.run_attempt(consortium.run(EXACT, policy='on_missing = "stop"\ntimeout = 0.1'), transport)
    close(transport.services)
    (trouble,) = outcome.troubles
    assert (trouble["site"], trouble["kind"]) == ("lima", "refused")


def test_a_node_that_no_site_has_ends_the_run_with_its_name(tmp_path):
    consortium = Consortium(tmp_path)
    for seed, site in enumerate(SITES):
        write_table(consortium.table(site), seed, order=[0, 1, 2, 3, 4, 5, 6])
    transport = Loopback(consortium.services())
    outcome = consortium.run_attempt(consortium.run(EXACT, missing_nodes='"allow"'), transport)
    close(transport.services)
    assert outcome.ended == "failed"
    assert "none has 'node 7'" in outcome.message


def test_a_table_may_hold_more_than_the_nodes(tmp_path):
    plain, rich = Consortium(tmp_path / "plain"), Consortium(tmp_path / "rich", drop=("subject", "age"))
    for seed, site in enumerate(SITES):
        signals = write_table(rich.table(site), seed)
        frame = pd.DataFrame(signals, columns=list(NODES))
        frame.insert(0, "subject", [f"s{k}" for k in range(len(frame))])
        frame.insert(4, "age", np.arange(len(frame)) % 7)
        frame.to_csv(rich.table(site), index=False, float_format=lambda value: repr(float(value)))
    assert digests(plain.finish(plain.run(EXACT))) == digests(rich.finish(rich.run(EXACT)))


def test_two_runs_of_a_study_end_in_the_same_bits(tmp_path):
    consortium = Consortium(tmp_path)
    assert digests(consortium.finish(consortium.run(EXACT))) == digests(consortium.finish(consortium.run(EXACT)))


def test_a_finished_run_that_is_conducted_again_ends_the_same(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.run(EXACT)
    first = digests(consortium.finish(run))
    transport = Loopback(consortium.services())
    assert digests(consortium.finish(run, transport)) == first
    assert transport.asked == []  # a job that had waited in the engine's queue: all is done
    (run.folder / "outcome.json").unlink()  # the server died before it noted the end
    assert digests(consortium.finish(run, transport)) == first
    assert len(transport.asked) == 2 * len(SITES)  # hello and finish: no round is asked again


def test_each_site_finds_the_same_graphs_at_home(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.run(EXACT, share_graphs="false")
    results = consortium.finish(run)
    learned = learned_here(run.study(), NODES, {site: consortium.table(site) for site in SITES})
    for site in SITES:
        home = consortium.folder / site / "results" / run.run_id
        assert (home / "consensus" / "graph.npz").read_bytes() == (results / "consensus" / "graph.npz").read_bytes()
        with np.load(home / "silos" / site / "graph.npz") as own:
            assert own["weights"].tobytes() == learned.graphs[site][learned.graphs[site] > 0].tobytes()


def test_reading_tables_in_threads_leaves_the_warnings_of_the_process_as_they_were():
    """Python's `catch_warnings` is one for all threads: who enters first may leave last, and put back the other's."""
    first_is_in, second_is_in, never = threading.Event(), threading.Event(), threading.Event()

    class Reader:
        def __init__(self, entered: threading.Event, wait_for: threading.Event) -> None:
            self.entered, self.wait_for = entered, wait_for

        def __next__(self):
            self.entered.set()
            self.wait_for.wait(0.2)
            raise StopIteration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        readers = (Reader(first_is_in, second_is_in), Reader(second_is_in, never))
        threads = [threading.Thread(target=text._next_frame, args=(reader,)) for reader in readers]
        for thread in threads:
            thread.start()
            first_is_in.wait(5)
        for thread in threads:
            thread.join()
        assert list(warnings.filters) == before
