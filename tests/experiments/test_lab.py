"""The lab: what is finished is kept, and how many processes work changes nothing."""

import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from silograph.experiments import lab as lab_module
from silograph.experiments import table4, table5
from silograph.experiments.contest import PeerContest
from silograph.experiments.lab import Lab
from silograph.experiments.scenarios import NESTED, SIZES
from silograph.experiments.session import Session
from silograph.experiments.trials import Trial, run_trial
from testing.lab_jobs import Job, runs, square
from testing.small_experiments import GRIDS, KNOWN_REGIONS, RECIPE, SCALE, assert_same, write_abide, write_coil


@pytest.fixture
def jobs(tmp_path):
    return [Job(number=number, folder=tmp_path) for number in (3, 1, 2)]


@pytest.fixture
def lab(tmp_path):
    return Lab(kept=tmp_path / "cells")


def squares(results):
    return [float(arrays["square"]) for arrays in results]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_jobs_whoever_ends_first(workers, lab, jobs):
    jobs = [replace(jobs[0], wait=0.3), *jobs[1:]]
    assert squares(replace(lab, workers=workers).results("squares", square, jobs)) == [9, 1, 4]
    assert sorted(runs(jobs[0].folder)) == [1, 2, 3]


def test_a_finished_job_is_read_and_not_run_again(lab, jobs, tmp_path):
    first = lab.results("squares", square, jobs[:2])
    again = lab.results("squares", square, jobs)
    assert runs(tmp_path) == [3, 1, 2]
    for arrays, kept in zip(first, again[:2], strict=True):
        assert list(arrays) == list(kept)
        assert_same(arrays, kept)


def test_progress_counts_what_was_found_and_then_every_job(lab, jobs):
    lab.results("squares", square, jobs[:1])
    told = []
    replace(lab, on_progress=lambda *said: told.append(said)).results("squares", square, jobs)
    assert told == [("squares", 1, 3), ("squares", 2, 3), ("squares", 3, 3)]


def damages():
    def flipped(good: bytes) -> bytes:
        middle = good.index(b"flat.npy") + 60  # in the compressed numbers
        return good[:middle] + bytes(255 - value for value in good[middle : middle + 8]) + good[middle + 8 :]

    return {
        "empty": lambda good: b"",
        "cut": lambda good: good[: len(good) // 2],
        "text": lambda good: b"not an archive",
        "flipped": flipped,
        "pickled": lambda good: b"\x80\x04N.",
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_file_is_made_anew(damage, lab, jobs, tmp_path):
    lab.results("squares", square, jobs[:1])
    (file,) = lab.kept.iterdir()
    good = file.read_bytes()
    file.write_bytes(damages()[damage](good))
    assert squares(lab.results("squares", square, jobs[:1])) == [9]
    assert runs(tmp_path) == [3, 3]
    assert squares(lab.results("squares", square, jobs[:1])) == [9]
    assert runs(tmp_path) == [3, 3]
    assert [path.name for path in lab.kept.iterdir()] == [file.name]


def test_an_error_reaches_the_caller_and_what_was_finished_stays(lab, jobs, tmp_path):
    (tmp_path / "trap").touch()
    with pytest.raises(ArithmeticError, match="trap"):
        lab.results("squares", square, jobs)
    assert len(list(lab.kept.iterdir())) == 2
    (tmp_path / "trap").unlink()
    assert squares(lab.results("squares", square, jobs)) == [9, 1, 4]
    assert runs(tmp_path) == [3, 1, 2]


def test_an_error_in_another_process_reaches_the_caller_too(lab, tmp_path):
    (tmp_path / "trap").touch()
    jobs = [Job(number=1, folder=tmp_path), Job(number=2, folder=tmp_path, wait=0.5)]
    with pytest.raises(ArithmeticError, match="trap"):
        replace(lab, workers=2).results("squares", square, jobs)
    (tmp_path / "trap").unlink()
    assert squares(lab.results("squares", square, jobs)) == [1, 4]
    assert runs(tmp_path) == [1, 2]


def test_another_job_and_another_source_are_other_files(lab, jobs, tmp_path, monkeypatch):
    lab.results("squares", square, jobs[:1])
    lab.results("squares", square, [replace(jobs[0], wait=0.001)])
    assert len(list(lab.kept.iterdir())) == 2
    monkeypatch.setattr(lab_module, "source_digest", lambda sources: "another version")
    lab.results("squares", square, jobs[:1])
    assert len(list(lab.kept.iterdir())) == 3
    assert runs(tmp_path) == [3, 3, 3]


def test_without_a_folder_nothing_is_kept(jobs, tmp_path):
    lab = Lab()
    assert squares(lab.results("squares", square, jobs)) == squares(lab.results("squares", square, jobs))
    assert runs(tmp_path) == [3, 1, 2] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_no_jobs_have_no_results(lab):
    assert lab.results("none", square, []) == []


def test_seconds_are_summed_over_jobs_once_each_and_the_dearest_method_comes_first(lab, jobs):
    lab.results("squares", square, jobs)
    lab.results("squares", square, jobs[:1])  # as another table does that needs the same
    assert lab.seconds_by_method() == {"slow": 6.0, "quick": 1.5}
    assert list(lab.seconds_by_method()) == ["slow", "quick"]


def test_one_process_and_two_give_the_same_numbers_to_the_last_bit():
    trials = [
        Trial(scenario=scenario, seed=seed, recipe=RECIPE) for scenario in (SIZES[0], NESTED) for seed in range(2)
    ]
    alone = Lab(workers=1).results("trials", run_trial, trials)
    together = Lab(workers=2).results("trials", run_trial, trials)
    for one, other in zip(alone, together, strict=True):
        assert_same(one, other)


FINGERPRINT = """
import hashlib, sys
from silograph.experiments.grids import learn_grid
from testing.small_experiments import RECIPE
from silograph.experiments.recipe import CONTENDERS
from silograph.experiments.scenarios import SIZES
from silograph.experiments.trials import draw, silos_of

silos = silos_of(draw(SIZES[0], 0))
if sys.argv[1] == "other work first":
    learn_grid(silos, CONTENDERS["exact"], RECIPE)
learned = [one for name in ("igl", "ppgl") for one in learn_grid(silos, CONTENDERS[name], RECIPE)]
print(hashlib.sha256(b"".join(one.graphs.tobytes() for one in learned)).hexdigest())
"""


def fingerprint(first: str, **environment: str) -> str:
    """Of graphs learned in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    ran = subprocess.run(
        [sys.executable, "-c", FINGERPRINT, first],
        env=os.environ | {"PYTHONPATH": path} | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.strip()


def test_numbers_do_not_depend_on_what_the_process_did_before():
    """Compiled loops that call each other must not take another's copy, rounded otherwise, because it came first."""
    assert fingerprint("other work first") == fingerprint("nothing first")


@pytest.mark.slow
def test_numbers_do_not_depend_on_whether_loops_were_compiled_or_read_from_disk(tmp_path):
    compiled = fingerprint("nothing first", NUMBA_CACHE_DIR=str(tmp_path))
    assert fingerprint("nothing first", NUMBA_CACHE_DIR=str(tmp_path)) == compiled


# --- all that numbers depend on ---------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A copy of the source; the digest is taken of it."""
    package = Path(lab_module.__file__).parents[1]
    copy = shutil.copytree(package, tmp_path / "silograph", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(lab_module, "__file__", str(copy / "experiments" / "lab.py"))
    return copy


def change(file):
    file.write_text(file.read_text() + "# changed\n")


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("local/solvers/newton.py", True),
        ("methods/common/sweeps.py", True),
        ("experiments/trials.py", True),
        ("experiments/recipe.py", True),
        ("data/readers/table.py", True),  # reads ABIDE's .1D files
        ("report/drawing.py", False),
        ("experiments/table1.py", False),
        ("experiments/printed.py", False),
        ("cli/app.py", False),
    ],
)
def test_a_change_of_what_learns_counts_and_a_change_of_what_shows_does_not(file, counts, source):
    digest = lab_module.source_digest.__wrapped__
    before = digest()
    change(source / file)
    assert (digest() != before) == counts


def test_other_peoples_methods_are_run_anew_only_where_the_draws_the_scores_or_they_themselves_change(source):
    digest = lab_module.source_digest.__wrapped__
    before = digest(PeerContest.sources)
    for file in ("methods/exact.py", "analysis/choosing.py", "experiments/signs.py"):
        change(source / file)
    assert digest(PeerContest.sources) == before
    for file in ("datasets/synthetic.py", "metrics.py", "experiments/peers.py"):
        change(source / file)
        assert digest(PeerContest.sources) != before
        before = digest(PeerContest.sources)


def test_other_brains_in_the_same_file_are_learned_anew(tmp_path):
    session = Session(lab=Lab(kept=tmp_path / "cells"), scale=SCALE, abide=tmp_path / "abide.npz")
    write_abide(session.abide, KNOWN_REGIONS)
    (before,) = table5.studies(session, [(10.0, 0.1)], "exact")
    write_abide(session.abide, KNOWN_REGIONS, n_autism=5, n_control=6)
    (after,) = table5.studies(session, [(10.0, 0.1)], "exact")
    assert before["weights"].shape[0] == 16
    assert after["weights"].shape[0] == 11


def test_other_images_in_the_same_folder_are_learned_anew(tmp_path, monkeypatch):
    single = replace(GRIDS, **{field.name: getattr(GRIDS, field.name)[:1] for field in fields(GRIDS)})
    scale = replace(SCALE, draws=2, recipe=replace(RECIPE, rounds=2), image_grids=single)
    session = Session(lab=Lab(kept=tmp_path / "cells"), scale=scale)
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path))
    write_coil(tmp_path / "coil20.npz")
    before = table4.learn_and_choose(session).chosen["IGL"].scores
    np.savez(tmp_path / "coil20.npz", X_f32=np.random.default_rng(0).random((20, 72, 1024)).astype(np.float32))
    after = table4.learn_and_choose(session).chosen["IGL"].scores
    assert not np.array_equal(before, after)
