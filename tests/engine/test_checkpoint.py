"""Checkpoints: whole or not at all, and a run that goes on from one ends as if it had never stopped."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from silograph.engine import study
from silograph.engine.checkpoint import Checkpoint
from silograph.engine.study import learn_silos
from silograph.errors import CheckpointError, OutputError
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.problems import costs


def saved(folder: Path, *trees: dict, run_id: str = "a run") -> Checkpoint:
    checkpoint = Checkpoint(folder, run_id=run_id)
    for tree in trees:
        checkpoint.save(tree)
    return checkpoint


def loaded(folder: Path, run_id: str = "a run") -> dict | None:
    return Checkpoint(folder, run_id=run_id).load()


def told(node: object) -> object:
    """A tree as something that can be compared to the last bit, with types and shapes."""
    if isinstance(node, dict):
        return {key: told(child) for key, child in node.items()}
    if isinstance(node, list):
        return [told(child) for child in node]
    if isinstance(node, np.ndarray):
        return node.dtype.str, node.shape, node.tobytes()
    return repr(node)  # tells 1 from 1.0 and from True, 0.0 from -0.0, and NaN from nothing else


def files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}


TREES = {
    "nothing": {},
    "whole numbers": {"round": 3, "large": 2**70, "negative": -1},
    "numbers": {"a": 0.1, "b": -0.0, "c": 5e-324, "d": 1.7976931348623157e308, "e": 1 / 3},
    "not finite": {"a": np.inf, "b": -np.inf, "c": np.nan},
    "truth and nothing": {"yes": True, "no": False, "none": None},
    "text": {"step": "mix", "empty": "", "Zürich\n\ud800": "é\x00"},
    "nested": {"silos": {"a": {"w": np.ones(3), "deep": {"er": [{"x": np.zeros(2)}, 1, [None, "s"]]}}}, "empty": {}},
    "vector": {"w": np.array([0.0, -0.0, 5e-324, np.inf, -np.inf, np.nan, 1 / 3])},
    "matrix": {"gram": np.arange(6.0).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3))},
    "slices": {"a": np.arange(10.0)[::-3], "b": np.arange(12.0).reshape(3, 4)[-2:, -2:]},
    "one number": {"scalar": np.array(3.5)},
    "many dimensions": {"cube": np.arange(24.0).reshape(2, 3, 4)},
    "empty beside full": {"none": np.zeros(0), "gram": np.zeros((0, 0)), "w": np.ones(2), "flat": np.zeros((3, 0))},
    "only empty": {"none": np.zeros(0), "gram": np.zeros((0, 3))},
    "lists of arrays": {"points": [np.ones(2), np.zeros(2), np.zeros(0)], "no points": [], "lists": [[np.ones(1)], []]},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_what_was_saved_is_loaded_to_the_last_bit(tree, tmp_path):
    before = told(tree)
    saved(tmp_path / "new" / "folder", tree)
    assert told(loaded(tmp_path / "new" / "folder")) == before


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_what_was_loaded_and_saved_again_is_still_the_same(tree, tmp_path):
    saved(tmp_path, tree)
    again = Checkpoint(tmp_path, run_id="a run")
    again.save(again.load())
    assert told(loaded(tmp_path)) == told(tree)


def test_numpys_numbers_come_back_as_numbers(tmp_path):
    saved(tmp_path, {"gap": np.float64(0.1), "n": np.int64(3), "converged": np.bool_(True), "pair": (1, 2.0)})
    assert loaded(tmp_path) == {"gap": 0.1, "n": 3, "converged": True, "pair": [1, 2.0]}


def test_where_nothing_was_saved_there_is_nothing(tmp_path):
    assert loaded(tmp_path) is None
    assert loaded(tmp_path / "not there") is None


def test_the_last_of_many_rounds_counts(tmp_path):
    saved(tmp_path, *({"round": k, "w": np.full(3, float(k))} for k in range(12)))
    assert told(loaded(tmp_path)) == told({"round": 11, "w": np.full(3, 11.0)})


# --- no more is written than is new -----------------------------------------------------------------------------------


def test_an_array_that_did_not_change_is_not_written_again(tmp_path):
    checkpoint, long = Checkpoint(tmp_path, run_id="a run"), np.arange(1000.0)
    for k in range(4):
        checkpoint.save({"long": long, "short": np.full(2, float(k))})
    assert files(tmp_path).items() >= {"00000001.segment": 8016, "00000004.segment": 16}.items()
    assert told(loaded(tmp_path)) == told({"long": long, "short": np.full(2, 3.0)})


def test_an_array_that_is_there_twice_is_written_once(tmp_path):
    w = np.arange(5.0)
    saved(tmp_path, {"u": w, "parts": {"u": w}, "points": [w, w]})
    assert files(tmp_path)["00000001.segment"] == 40


def test_a_resumed_run_does_not_write_again_what_it_loaded(tmp_path):
    saved(tmp_path, {"long": np.arange(1000.0), "k": 1})
    resumed = Checkpoint(tmp_path, run_id="a run")
    tree = resumed.load()
    resumed.save(tree | {"new": np.ones(1)})
    resumed.save(tree | {"newer": np.ones(2)})
    assert [size for name, size in files(tmp_path).items() if name.endswith("segment")] == [8000, 16]
    assert told(loaded(tmp_path)) == told({"long": np.arange(1000.0), "k": 1, "newer": np.ones(2)})


def test_files_that_are_no_longer_needed_are_removed(tmp_path):
    saved(tmp_path, *({"w": np.full(3, float(k))} for k in range(5)))
    assert set(files(tmp_path)) == {"00000005.json", "00000005.segment"}


def test_a_long_memory_that_slides_keeps_just_the_segments_it_lies_in(tmp_path):
    checkpoint, points = Checkpoint(tmp_path, run_id="a run"), []
    for k in range(10):
        points = [*points, np.full(4, float(k))][-3:]
        checkpoint.save({"points": points})
    segments = {name: size for name, size in files(tmp_path).items() if name.endswith("segment")}
    assert segments == {f"{number:08d}.segment": 32 for number in (8, 9, 10)}


@pytest.mark.parametrize("name", ["notes.json", "0.json", "other.segment"])
def test_files_of_others_in_the_folder_stay(name, tmp_path):
    (tmp_path / name).write_text("mine")
    saved(tmp_path, {"w": np.ones(2)}, {"w": np.zeros(2)})
    assert (tmp_path / name).read_text() == "mine"
    assert told(loaded(tmp_path)) == told({"w": np.zeros(2)})


# --- a crash leaves the last whole round ------------------------------------------------------------------------------


class Crash(BaseException):
    """The process ends here: no error handling of its own would run."""


def failing_at(patch: pytest.MonkeyPatch, number: int, error: BaseException) -> list[str]:
    """Let the numbered operation on files fail (0: none), and after a crash all later ones; returns what was done."""
    done: list[str] = []

    def failing(name, operation):
        def attempt(*args, **kwargs):
            done.append(name)
            if len(done) == number or (len(done) > number > 0 and isinstance(error, Crash)):
                raise error
            return operation(*args, **kwargs)

        return attempt

    patch.setattr(os, "fsync", failing("fsync", os.fsync))
    for name in ("replace", "unlink", "mkdir"):
        patch.setattr(Path, name, failing(name, getattr(Path, name)))
    return done


ROUNDS = [{"k": k, "fixed": None, "w": np.full(3, float(k)), "points": [np.full(2, float(k))]} for k in range(4)]


@pytest.mark.parametrize("error", [Crash(), OSError(28, "No space left on device")], ids=["crash", "full disk"])
@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_a_failure_at_any_moment_leaves_the_round_before_or_the_new_one_whole(error, n_before, tmp_path):
    outcomes = set()
    for number in range(1, 100):
        folder = tmp_path / str(number)
        checkpoint = saved(folder, *ROUNDS[:n_before])
        with pytest.MonkeyPatch.context() as patch:
            done = failing_at(patch, number, error)
            try:
                checkpoint.save(ROUNDS[n_before])
            except (Crash, OutputError):
                pass
            else:
                break
        after = Checkpoint(folder, run_id="a run")
        tree = after.load()
        k = n_before - 1 if tree is None else tree["k"]
        assert told(tree) == (told(ROUNDS[k]) if k >= 0 else told(None)), done
        outcomes.add(k)
        after.save(ROUNDS[k + 1])  # and from there the run goes on
        assert told(loaded(folder)) == told(ROUNDS[k + 1])
        number_of = f"{k + 2:08d}"
        assert set(files(folder)) == {f"{number_of}.json", f"{number_of}.segment"}, "nothing half-written stays"
    assert len(done) < number, "every moment was tried"
    assert outcomes >= {n_before - 1}


def test_files_are_on_the_disk_before_they_get_their_names_and_old_ones_go_last(tmp_path, monkeypatch):
    checkpoint = saved(tmp_path, ROUNDS[0])
    done = failing_at(monkeypatch, 0, Crash("never"))
    checkpoint.save(ROUNDS[1])
    written = [name for name in done if name != "mkdir"]
    assert written == ["fsync", "replace", "fsync", "fsync", "replace", "fsync", "unlink", "unlink"]


def test_a_full_disk_is_told_with_the_folder_and_the_cause(tmp_path, monkeypatch):
    checkpoint = saved(tmp_path, ROUNDS[0])
    failing_at(monkeypatch, 2, OSError(28, "No space left on device"))
    with pytest.raises(OutputError, match=r"cannot be written.*No space left") as refusal:
        checkpoint.save(ROUNDS[1])
    assert str(tmp_path) in str(refusal.value)


def test_after_a_full_disk_was_emptied_the_same_checkpoint_can_be_saved(tmp_path):
    checkpoint, tree = saved(tmp_path, ROUNDS[0]), {"w": np.arange(3.0)}
    with pytest.MonkeyPatch.context() as patch:
        failing_at(patch, 2, OSError(28, "No space left on device"))
        with pytest.raises(OutputError):
            checkpoint.save(tree)
    checkpoint.save(tree)
    assert told(loaded(tmp_path)) == told({"w": np.arange(3.0)})


def test_a_full_disk_leaves_no_half_written_files(tmp_path, monkeypatch):
    checkpoint = saved(tmp_path, ROUNDS[0])
    before = files(tmp_path)
    failing_at(monkeypatch, 2, OSError(28, "No space left on device"))
    with pytest.raises(OutputError):
        checkpoint.save(ROUNDS[1])
    assert files(tmp_path) == before


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="taken"):
        saved(tmp_path / "taken", ROUNDS[0])


# --- damage is noticed ------------------------------------------------------------------------------------------------

TREE = {"k": 12, "gap": 0.125, "converged": False, "w": np.arange(4.0), "points": [np.ones(2)], "step": "mix"}


def test_a_flipped_bit_in_an_array_is_noticed(tmp_path):
    saved(tmp_path, TREE)
    segment = tmp_path / "00000001.segment"
    sound = segment.read_bytes()
    for place in range(0, 8 * len(sound), 5):
        damaged = bytearray(sound)
        damaged[place // 8] ^= 1 << place % 8
        segment.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"00000001\.segment: is damaged\. Start the run anew"):
            loaded(tmp_path)


def test_a_segment_cut_short_is_noticed(tmp_path):
    saved(tmp_path, TREE)
    segment = tmp_path / "00000001.segment"
    sound = segment.read_bytes()
    for length in range(len(sound)):
        segment.write_bytes(sound[:length])
        with pytest.raises(CheckpointError, match="is damaged"):
            loaded(tmp_path)


def test_a_segment_that_is_gone_is_noticed(tmp_path):
    saved(tmp_path, TREE)
    (tmp_path / "00000001.segment").unlink()
    with pytest.raises(CheckpointError, match=r"00000001\.segment: cannot be read.*Start the run anew"):
        loaded(tmp_path)


def test_a_manifest_cut_short_is_noticed(tmp_path):
    saved(tmp_path, TREE)
    manifest = tmp_path / "00000001.json"
    sound = manifest.read_bytes()
    for length in range(len(sound)):
        manifest.write_bytes(sound[:length])
        with pytest.raises(CheckpointError, match=r"00000001\.json"):
            loaded(tmp_path)


def test_a_flipped_bit_in_a_manifest_is_noticed(tmp_path):
    saved(tmp_path, TREE)
    manifest = tmp_path / "00000001.json"
    sound = manifest.read_bytes()
    for place in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[place // 8] ^= 1 << place % 8
        manifest.write_bytes(damaged)
        try:
            assert told(loaded(tmp_path)) == told(TREE), f"bit {place}"
        except CheckpointError:
            continue


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {},
        "text",
        {"format": 1, "run": "a run"},
        {"format": 1, "run": "a run", "round": 1},
        {"format": 1, "run": "a run", "round": "one", "tree": {}},
        {"format": 1, "run": "a run", "round": 1, "tree": 3},
        {"format": 1, "run": "a run", "round": 1, "tree": {"w": {"\x00array": 3}}},
        {"format": 1, "run": "a run", "round": 1, "tree": {"w": {"\x00array": ["00000001.segment", 0]}}},
        {"format": 1, "run": "a run", "round": 1, "tree": {"w": {"\x00array": [1, 2, 3, 4]}}},
        {"format": 1, "run": "a run", "round": 1, "tree": {"w": {"\x00array": ["00000001.segment", 0, [-1], 0]}}},
        {"format": 1, "run": "a run", "round": 1, "tree": {"w": {"\x00array": ["..", 0, [1], 0]}}},
    ],
    ids=json.dumps,
)
def test_a_manifest_that_is_none_is_told_as_such(manifest, tmp_path):
    saved(tmp_path, TREE)
    (tmp_path / "00000001.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError):
        loaded(tmp_path)


def test_a_manifest_that_is_too_deep_is_told_as_such(tmp_path):
    (tmp_path / "00000001.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError):
        loaded(tmp_path)


def test_the_checkpoint_of_another_version_is_not_taken_up(tmp_path):
    saved(tmp_path, TREE)
    path = tmp_path / "00000001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(CheckpointError, match="another version of silograph"):
        loaded(tmp_path)


def test_the_checkpoint_of_another_run_is_not_taken_up_and_the_user_is_told_what_to_do(tmp_path):
    saved(tmp_path, TREE)
    with pytest.raises(
        CheckpointError, match=r"other data or other settings\. Resume with the files and options .* or start a new run"
    ):
        loaded(tmp_path, run_id="another run")


# --- runs that go on --------------------------------------------------------------------------------------------------

METHODS = {
    "exact": {"degree": 2, "coupling": 0.7},
    "exact, uncoupled": {"degree": 2, "coupling": 0},
    "algorithm1": {"degree": 2, "method": "algorithm1", "rounds": 5},
    "fedavg": {"degree": 2, "method": "fedavg", "rounds": 4},
    "fedprox": {"degree": 2, "method": "fedprox", "rounds": 4},
    "mrmtl": {"degree": 2, "method": "mrmtl"},
    "mrmtl, gradient": {"degree": 2, "method": "mrmtl", "solver": "gradient", "rounds": 4},
    "ditto": {"degree": 2, "method": "ditto"},
    "ditto, gradient": {"degree": 2, "method": "ditto", "solver": "gradient", "rounds": 4},
    "pooled": {"degree": 2, "method": "pooled"},
}
every_method = pytest.mark.parametrize("options", METHODS.values(), ids=METHODS)


def some_silos(seed: int = 5, n_nodes: int = 7) -> list[Silo]:
    rng, pairs = np.random.default_rng(seed), Pairs.all(n_nodes)
    return [
        Silo(name=name, pairs=pairs, cost=costs("smooth", rng, n_samples, n_nodes), n_samples=n_samples)
        for name, n_samples in (("north", 40), ("south", 15), ("west", 90))
    ]


def assert_same(one, other):
    for name in ("consensus", "graphs", "contributions", "reported", "objective", "gap", "converged", "diverged"):
        assert told(getattr(one, name)) == told(getattr(other, name)), name
    for name in ("n_rounds", "n_setup_rounds", "alpha", "beta", "rho", "lam", "degree"):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name
    assert told(list(one.history)) == told(list(other.history))


@every_method
def test_writing_checkpoints_does_not_change_a_bit(options, tmp_path):
    settings = StudySettings(**options)
    assert_same(learn_silos(some_silos(), settings, checkpoint=tmp_path), learn_silos(some_silos(), settings))


def arrays_in(node: object) -> list[np.ndarray]:
    if isinstance(node, dict | list):
        return [array for child in (node.values() if isinstance(node, dict) else node) for array in arrays_in(child)]
    return [node] if isinstance(node, np.ndarray) else []


@every_method
def test_no_method_alters_an_array_that_was_written_down(options, tmp_path, monkeypatch):
    written = {}

    class Watched(Checkpoint):
        def save(self, tree):
            super().save(tree)
            written.update({id(array): (array, array.copy()) for array in arrays_in(tree) if id(array) not in written})

    monkeypatch.setattr(study, "Checkpoint", Watched)
    learn_silos(some_silos(), StudySettings(**options), checkpoint=tmp_path)
    assert len(written) > 3
    assert all(array.tobytes() == then.tobytes() for array, then in written.values())


@every_method
def test_a_run_resumed_after_any_round_ends_as_if_it_had_never_stopped(options, tmp_path):
    settings, stops = StudySettings(**options), []

    def keep(stage, record):
        stops.append((stage, tmp_path / f"{stage} {record['round']}"))
        shutil.copytree(tmp_path / "run", stops[-1][1])

    undisturbed = learn_silos(some_silos(), settings, checkpoint=tmp_path / "run", on_round=keep)
    assert {stage for stage, _ in stops} == {"setup", "learn"}
    for _, folder in stops:
        assert_same(learn_silos(some_silos(), settings, checkpoint=folder), undisturbed)


class StopError(Exception):
    pass


@every_method
def test_a_run_that_stops_after_every_single_round_ends_as_if_it_had_never_stopped(options, tmp_path):
    settings, rounds = StudySettings(**options), []

    def stop(stage, record):
        rounds.append((stage, record["round"]))
        raise StopError

    undisturbed, resumed = learn_silos(some_silos(), settings), None
    while resumed is None:
        try:
            resumed = learn_silos(some_silos(), settings, checkpoint=tmp_path, on_round=stop)
        except StopError:
            continue
    assert_same(resumed, undisturbed)
    assert rounds == [("setup", k + 1) for k in range(resumed.n_setup_rounds)] + [
        ("learn", k + 1) for k in range(resumed.n_rounds)
    ], "no round was done twice"


@every_method
def test_a_finished_run_resumes_to_its_result_at_once(options, tmp_path):
    settings, rounds = StudySettings(**options), []
    finished = learn_silos(some_silos(), settings, checkpoint=tmp_path)
    before = files(tmp_path / "learn")
    resumed = learn_silos(
        some_silos(), settings, checkpoint=tmp_path, on_round=lambda stage, record: rounds.append(record)
    )
    assert_same(resumed, finished)
    assert rounds == []
    assert files(tmp_path / "learn") == before


def test_a_run_from_a_given_start_resumes_too_and_leaves_the_start_as_it_was(tmp_path):
    settings, start = StudySettings(degree=2), np.full(21, 0.3)
    once = learn_silos(some_silos(), settings, start=start, checkpoint=tmp_path)
    assert_same(learn_silos(some_silos(), settings, start=start, checkpoint=tmp_path), once)
    start[0] = 1.0  # it is still the caller's


@pytest.mark.parametrize(
    "other",
    [
        {"settings": StudySettings(degree=3)},
        {"settings": StudySettings(degree=2, tol=1e-7)},
        {"settings": StudySettings(degree=2, method="fedavg")},
        {"silos": some_silos(seed=6)},
        {"silos": some_silos()[::-1]},
        {"silos": some_silos()[:2]},
        {"start": np.ones(21)},
    ],
    ids=["degree", "tolerance", "method", "data", "order", "silos", "start"],
)
def test_a_checkpoint_is_not_taken_up_by_a_study_of_something_else(other, tmp_path):
    learn_silos(some_silos(), StudySettings(degree=2), checkpoint=tmp_path)
    asked = {"silos": some_silos(), "settings": StudySettings(degree=2)} | other
    with pytest.raises(CheckpointError, match="other data or other settings"):
        learn_silos(**asked, checkpoint=tmp_path)
