"""Runs with noise from files: their record, their folder, and a run that is stopped and resumed."""

import shutil

import numpy as np
import pytest

from silograph import ParameterError, learn_files, read_run
from silograph.runs import learn as runs

NOISE = {"epsilon": 1, "delta": 1e-5, "degree": 3}


@pytest.fixture
def tables(tmp_path):
    rng, mix = np.random.default_rng(0), np.random.default_rng(1).normal(size=(6, 6))
    paths = [tmp_path / f"{name}.npy" for name in ("oslo", "lima", "kyoto")]
    for path in paths:
        np.save(path, rng.normal(size=(60, 6)) @ mix)
    return paths


def test_the_record_says_what_the_noise_promises(tables, tmp_path):
    learn_files(tables, method="oneshot", out=tmp_path / "run", **NOISE)
    record = read_run(tmp_path / "run").record
    assert record.privacy.min_samples == 60
    assert record.privacy.rho == pytest.approx(0.03055, abs=1e-5)
    assert record.parameters["privacy"]["sums"] == "masked"
    assert learn_files(tables, method="oneshot", degree=3).record.privacy is None


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("method", ["oneshot", "exact"])
def test_a_run_that_was_stopped_after_its_noise_was_drawn_goes_on_with_it(method, tables, tmp_path):
    def stop(what: str, part: float | None) -> None:
        if what.startswith("Round 1"):
            raise StoppedError

    with pytest.raises(StoppedError):
        learn_files(tables, method=method, out=tmp_path / "run", on_progress=stop, **NOISE)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    ends = [learn_files(resume=tmp_path / name) for name in ("run", "copy")]
    assert ends[0].consensus_graph == ends[1].consensus_graph
    assert ends[0].graphs == ends[1].graphs
    assert ends[0].record.resumed
    assert ends[0].record.privacy == ends[1].record.privacy
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_public_numbers_come_from_a_file(tables, tmp_path):
    public = tmp_path / "public.csv"
    public.write_text("node,centre,scale\n" + "".join(f"{k},0,1\n" for k in range(6)))
    names = learn_files(tables[0]).names
    public.write_text("node,centre,scale\n" + "".join(f"{name},0,1\n" for name in names))
    run = learn_files(tables, method="oneshot", standardize=True, public=public, out=tmp_path / "run", **NOISE)
    assert run.parameters["public"] == str(public)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"standardize": True}, "standardize: a table's own means"),
        ({"missing": "pairs"}, "missing: gaps by pairs"),
        ({"precomputed": True}, "precomputed distances have no rows"),
        ({"sums": 2}, "difference of two sums"),
        ({"missing_nodes": "allow"}, "missing_nodes"),
        ({"public": "nowhere.csv"}, "are what standardize means"),
    ],
)
def test_combinations_without_a_guarantee_are_refused_before_a_file_is_read(given, said, tables, monkeypatch):
    monkeypatch.setattr(runs, "read_tables", lambda *_: pytest.fail("was read"))
    with pytest.raises(ParameterError, match=said):
        learn_files(tables, method="oneshot", **NOISE, **given)


def test_one_table_alone_opens_nothing_that_noise_could_be_on(tables):
    with pytest.raises(ParameterError, match="a table alone opens nothing"):
        learn_files(tables[0], epsilon=1, delta=1e-5)


def test_public_numbers_without_noise_are_refused(tables):
    with pytest.raises(ParameterError, match="for epsilon alone"):
        learn_files(tables, standardize=True, public="some.csv")
