"""Noise that a site keeps: one draw for one purpose, the same bytes ever after, and no second draw."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from silograph.federation.refusals import Refused
from silograph.federation.site.noise import KeptNoise, NoiseKey, protect_answer
from silograph.graph.pairs import Pairs
from silograph.privacy.noise import plan_noise
from silograph.privacy.settings import Privacy
from silograph.protocol.messages import COSTS, NOISY_COSTS, Header, parts_of, update_of
from silograph.protocol.sums import add_some, add_up, open_total
from silograph.protocol.units import Units

KEY = NoiseKey(study="a" * 64, version="v1", cohort=("kyoto", "lima", "oslo"), nodes="n")
PAIRS, UNITS, FIELDS = Pairs.all(5), Units(), {"cost": NOISY_COSTS}
NOISE = plan_noise(Privacy(epsilon=1.0, delta=1e-5), n_nodes=5, n_sites=3, min_samples=100, shared=False)
HEADER = Header(run="r", method="setup", step="costs", round=1)


def draw():
    return {"cost": np.random.default_rng().normal(size=10), "other": np.random.default_rng().normal(size=3)}


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_the_same_purpose_has_the_same_bytes_in_any_process_and_no_second_draw(tmp_path):
    first = KeptNoise(tmp_path / "noise").get(KEY, draw)
    assert_same(first, KeptNoise(tmp_path / "noise").get(KEY, lambda: pytest.fail("drew again")))


@pytest.mark.parametrize(
    "other",
    [
        {"study": "b" * 64},
        {"version": "v2"},
        {"cohort": ("kyoto", "lima")},
        {"cohort": ("lima", "kyoto", "oslo")},
        {"cohort": ("kyoto", "lima,oslo")},
        {"together": "c" * 64},
        {"nodes": "another order"},
    ],
)
def test_any_other_purpose_draws_anew(tmp_path, other):
    kept = KeptNoise(tmp_path)
    changed = replace(KEY, **other)
    assert (kept.get(KEY, draw)["cost"] != kept.get(changed, draw)["cost"]).all()
    assert len([path for path in tmp_path.iterdir() if path.name != "lock"]) == 2


def test_data_have_a_name_that_is_kept_and_tells_nothing_of_them(tmp_path):
    first, again, other = KeptNoise(tmp_path), KeptNoise(tmp_path), KeptNoise(tmp_path / "elsewhere")
    name = first.data_name(KEY)
    assert (len(name), again.data_name(KEY)) == (16, name)
    assert other.data_name(KEY) != name
    assert first.data_name(NoiseKey(study=KEY.study, version="v2", cohort=KEY.cohort, nodes=KEY.nodes)) != name


def test_only_the_site_s_user_can_read_what_is_kept(tmp_path):
    KeptNoise(tmp_path / "noise").get(KEY, draw)
    assert stat.S_IMODE((tmp_path / "noise" / KEY.name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "noise").stat().st_mode) == 0o700


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("place", [0, 30, 100, -1])
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path, place):
    kept, path = KeptNoise(tmp_path), tmp_path / KEY.name
    kept.get(KEY, draw)
    flip(path, place)
    damaged = path.read_bytes()
    with pytest.raises(Refused, match="damaged"):
        kept.get(KEY, lambda: pytest.fail("drew again"))
    assert path.read_bytes() == damaged
    path.write_bytes(damaged[:40])
    with pytest.raises(Refused, match="damaged"):
        kept.get(KEY, draw)
    path.write_bytes(b"")
    with pytest.raises(Refused, match="damaged"):
        kept.get(KEY, draw)


def test_a_file_in_another_s_place_is_refused(tmp_path):
    kept = KeptNoise(tmp_path)
    other = NoiseKey(study="b" * 64, version="v1", cohort=KEY.cohort, nodes=KEY.nodes)
    kept.get(KEY, draw)
    (tmp_path / KEY.name).rename(tmp_path / other.name)
    with pytest.raises(Refused, match="another study"):
        kept.get(other, draw)


def test_what_could_not_be_drawn_is_not_kept(tmp_path):
    kept = KeptNoise(tmp_path)

    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        kept.get(KEY, fail)
    kept.get(KEY, draw)


def test_one_table_and_the_sum_over_several_carry_noise_of_the_same_size(tmp_path):
    rng = np.random.default_rng(0)
    updates = [update_of(HEADER, name, {"cost": rng.uniform(0, 1, PAIRS.size)}) for name in ("a", "b", "c")]
    exact = {False: parts_of(updates[0])["cost"], True: add_up(updates, FIELDS, UNITS).vector("cost")}
    for several, term in exact.items():
        answer = add_some(updates, FIELDS, UNITS, source="oslo") if several else updates[0]
        kept, off = KeptNoise(tmp_path / str(several)), []
        for number in range(300):
            key = NoiseKey(study=f"{number:064d}", version="v", cohort=("oslo",), nodes="n")
            got = protect_answer(answer, FIELDS, UNITS, PAIRS, NOISE, kept, key)
            vector = open_total(got, FIELDS, UNITS).vector("cost") if several else parts_of(got)["cost"]
            off.append(np.asarray(vector) - term)
        assert np.std(off) == pytest.approx(NOISE.cost_sigma, rel=0.15)
        again = protect_answer(answer, FIELDS, UNITS, PAIRS, NOISE, kept, key)
        vector = open_total(again, FIELDS, UNITS).vector("cost") if several else parts_of(again)["cost"]
        assert (np.asarray(vector) - term == off[-1]).all()


def test_only_what_is_marked_carries_noise(tmp_path):
    fields = {"cost": NOISY_COSTS, "plain": COSTS}
    parts = {"cost": np.ones(PAIRS.size), "plain": np.ones(PAIRS.size)}
    got = protect_answer(update_of(HEADER, "a", parts), fields, UNITS, PAIRS, NOISE, KeptNoise(tmp_path), KEY)
    assert (parts_of(got)["plain"] == 1).all()
    assert (parts_of(got)["cost"] != 1).any()
