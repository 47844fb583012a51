"""Folders as sites, and many tables: what a run over them leaves, and what is said of bad ones."""

import json
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from silograph import GraphError, SignalError, SilosError, learn_files, read_run
from silograph.cli.app import app
from silograph.runs.layout import RunLayout

NODES = [f"n{k}" for k in range(6)]


def made(folder: Path, *names: str, seed: int = 0) -> list[Path]:
    rng = np.random.default_rng(seed)
    common, paths = rng.normal(size=(6, 6)), [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        X = rng.normal(size=(30, 6)) @ (common + 0.3 * rng.normal(size=(6, 6)))
        pd.DataFrame(X, columns=NODES).to_csv(path, index=False)
    return paths


@pytest.fixture
def sites(tmp_path) -> Path:
    made(tmp_path, "oslo/p1.csv", "oslo/p2.csv", "lima/p1.csv")
    return tmp_path


def test_folders_are_sites_and_give_what_their_files_give(sites):
    run = learn_files([sites / "oslo", sites / "lima"], degree=3, out=sites / "run")
    assert list(run.graphs) == ["oslo/p1", "oslo/p2", "lima/p1"]
    assert [silo.site for silo in run.silos] == ["oslo", "oslo", "lima"]
    assert (sites / "run" / "silos" / "oslo" / "p2" / "edges.csv").is_file()
    again = read_run(sites / "run")
    assert {name: again.graphs[name] == graph for name, graph in run.graphs.items()} == dict.fromkeys(run.graphs, True)
    files = [sites / "oslo/p1.csv", sites / "oslo/p2.csv", sites / "lima/p1.csv"]
    by_file = learn_files(files, degree=3)
    assert list(by_file.graphs) == ["oslo_p1", "oslo_p2", "lima_p1"]
    assert by_file.main.weights.tobytes() == run.main.weights.tobytes()


def test_a_folder_is_several_silos_of_one_site_and_with_one_table_it_is_that_table(sites):
    assert [silo.name for silo in learn_files(sites / "oslo", degree=3).silos] == ["oslo/p1", "oslo/p2"]
    assert learn_files(sites / "lima", degree=3).record.kind == "table"


def test_a_run_over_folders_is_resumed_with_the_tables_it_began_with(sites):
    out = sites / "run"
    whole = learn_files([sites / "oslo", sites / "lima"], degree=3)

    class StoppedError(Exception):
        pass

    def stop(what: str, part: float | None) -> None:
        if what.startswith("Round 2"):
            raise StoppedError

    with pytest.raises(StoppedError):
        learn_files([sites / "oslo", sites / "lima"], degree=3, out=out, on_progress=stop)
    made(sites, "oslo/p3.csv", seed=5)
    run = learn_files(resume=out)
    assert [silo.name for silo in run.silos] == ["oslo/p1", "oslo/p2", "lima/p1"]
    assert run.main.weights.tobytes() == whole.main.weights.tobytes()


@pytest.mark.parametrize("name", ["..", "a/..", "../a", "a/b/c", "/a", "a/", "a\\b", ""])
def test_a_silos_name_never_leads_out_of_the_run(tmp_path, name):
    with pytest.raises(GraphError, match="names of folders"):
        RunLayout(tmp_path).silo(name)


def test_silos_that_lack_nodes_and_have_gaps_are_learned_and_told_of(sites):
    path = sites / "oslo" / "p2.csv"
    frame = pd.read_csv(path)
    frame.loc[3, "n0"] = frame.loc[7, "n2"] = np.nan
    frame.assign(n4=1.5, n5=np.nan)[["n3", "n0", "n2", "n4", "n5"]].to_csv(path, index=False, na_rep="n/a")
    run = learn_files(
        [sites / "oslo", sites / "lima"], degree=2, missing="rows", missing_nodes="allow", out=sites / "run"
    )
    _, silo, other = run.silos
    assert (silo.missing_nodes, silo.rows_dropped, silo.n_samples) == (("n1", "n4", "n5"), 2, 28)
    assert (other.missing_nodes, other.rows_dropped) == ((), 0)
    assert set(run.graphs["oslo/p2"].names) == {"n0", "n2", "n3"}
    result = CliRunner().invoke(app, [
        "learn", str(sites / "oslo"), str(sites / "lima"), "--degree", "2", "--missing", "rows",
        "--missing-nodes", "allow",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "3 silos of 2 sites" in result.output
    assert "Rows left out, for gaps or as --keep-rows says: 2 (oslo/p2: 2)." in result.output
    assert "Nodes missing in silos, and learned from the others alone: 3 (oslo/p2: 3)." in result.output


def test_empty_cells_are_told_where_pairs_are_learned_from_the_rows_that_have_both(sites):
    path = sites / "lima" / "p1.csv"
    table = pd.read_csv(path)
    table.iloc[[1, 5], 0] = np.nan
    table.to_csv(path, index=False)
    places = [str(sites / "oslo" / "p1.csv"), str(path)]
    result = CliRunner().invoke(app, ["learn", *places, "--degree", "2", "--missing", "pairs", "--json"])
    assert [silo["gaps"] for silo in json.loads(result.stdout)["silos"]] == [0, 2]
    result = CliRunner().invoke(app, ["learn", str(path), "--degree", "2", "--missing", "pairs"])
    assert "Cells empty, so that each pair of nodes rests on the rows that have both: 2 (p1.csv: 2)." in " ".join(
        result.output.split()
    )


def test_a_single_table_tells_of_rows_left_out(sites):
    path = sites / "lima" / "p1.csv"
    pd.read_csv(path).assign(good=[0] * 5 + [1] * 25).to_csv(path, index=False)
    result = CliRunner().invoke(app, ["learn", str(path), "--degree", "2", "--keep-rows", "good"])
    assert "Rows left out, for gaps or as --keep-rows says: 5 (p1.csv: 5)" in result.output
    result = CliRunner().invoke(app, ["learn", str(path), "--degree", "2", "--keep-rows", "good", "--json"])
    assert json.loads(result.stdout)["silos"][0]["rows_dropped"] == 5


def test_bad_tables_among_many_are_named_together_and_nothing_is_written(tmp_path):
    paths = made(tmp_path, *(f"oslo/p{k:02}.csv" for k in range(20)))
    for path in paths[3:10]:
        path.write_text("")
    with pytest.raises(
        SignalError, match=r"(?s)^7 of 20 tables cannot be used:\n\S*oslo/p03\.csv: the file is empty.*p07.*and 2 more"
    ):
        learn_files(tmp_path / "oslo", out=tmp_path / "run")
    for path in paths[3:10]:
        path.write_text("n0,n1\n1,2\nx,3\n")
    with pytest.raises(SilosError, match=r"(?s)^7 of 20 tables.*p03\.csv: expected the nodes of \S*p00\.csv"):
        learn_files(tmp_path / "oslo", out=tmp_path / "run")
    for path in paths[3:10]:
        path.write_text(",".join(NODES) + "\n1,2,3,4,5,6\n1,2,3,x,5,6\n")
    with pytest.raises(
        SignalError, match=r"(?s)^5 of 20 tables.*p07\.csv, row 3, column 'n3'.*after these were not read"
    ):
        learn_files(tmp_path / "oslo", out=tmp_path / "run")
    for path in paths[4:10]:
        path.unlink()
    with pytest.raises(SignalError, match=r"^\S*oslo/p03\.csv, row 3, column 'n3': expected a finite number, got 'x'"):
        learn_files(tmp_path / "oslo", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_column_to_drop_is_in_some_table_at_least(sites):
    with pytest.raises(SignalError, match=r"drop=\['age_\*'\]: none of the tables"):
        learn_files([sites / "oslo"], drop="age_*")
    path = sites / "oslo" / "p1.csv"
    pd.read_csv(path).assign(age_now=3, age_then=4).to_csv(path, index=False)
    assert learn_files([sites / "oslo"], drop="age_*", degree=3).result.nodes == 6


@pytest.mark.parametrize("turned", ["p2", "p1"])
def test_a_table_that_lies_the_wrong_way_round_is_told_so(sites, turned):
    path = sites / "oslo" / f"{turned}.csv"
    frame = pd.read_csv(path)
    frame.T.to_csv(path)
    with pytest.raises(
        SilosError, match=r"(?s)wrong way round: it has rows that are called like the nodes.*transpose"
    ) as one:
        learn_files(sites / "oslo")
    assert (f"Or look at {path}" in str(one.value)) == ("Or look at" in str(one.value)) == (turned == "p1")
    frame.T.to_csv(path, index=False, header=False)
    with pytest.raises(SilosError, match=r"wrong way round: it has as many rows as there are nodes \(6\)"):
        learn_files(sites / "oslo")


def test_more_tables_than_a_process_may_open_are_read(tmp_path):
    (tmp_path / "oslo").mkdir()
    rng, (soft, hard) = np.random.default_rng(0), resource.getrlimit(resource.RLIMIT_NOFILE)
    for k in range(150):
        np.save(tmp_path / "oslo" / f"p{k:03}.npy", rng.normal(size=(8, 4)))
    in_use = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 100
    told: list[tuple[str, float | None]] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 60, hard))
    try:
        run = learn_files(
            tmp_path / "oslo", method="independent", alpha=1, beta=1, on_progress=lambda *now: told.append(now)
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(run.silos) == 150
    parts = [part for what, part in told if what.startswith("Reading 150 tables")]
    assert parts == sorted(parts)
    assert len(parts) == 150
