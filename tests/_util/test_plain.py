"""States and records as plain data: what comes back is what went in, or nothing does."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from silograph._util.plain import PlainDataError, from_plain, restore, to_plain
from silograph.errors import CheckpointError, ParameterError


@dataclass(frozen=True, kw_only=True)
class Inner:
    name: str
    count: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    w: np.ndarray
    gap: float = np.inf
    on: bool = False
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    parts: Mapping[str, np.ndarray | float] | None = None


def test_a_state_comes_back_as_it_was_its_arrays_the_same_objects():
    w = np.arange(3.0)
    state = State(w=w, on=True, inner=Inner(name="a"), several=(Inner(name="b", count=2),), parts={"u": w, "x": 1.0})
    back = restore(State, to_plain(state))
    assert (type(back), back.w is w, back.gap, back.on) == (State, True, np.inf, True)
    assert (back.inner, back.several, back.parts["x"]) == (state.inner, state.several, 1.0)
    assert back.parts["u"] is w
    assert restore(State, None) is None
    assert restore(type(None), None) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros(2, bool), "an array of bool"),
        (np.zeros(2, np.float32), "an array of float32"),
        ({1, 2}, "got set"),
        ({1: 2.0}, "got dict"),
        ([1.0], "got list"),
        (object(), "got object"),
    ],
)
def test_what_would_not_come_back_is_refused_when_it_is_kept(value, said):
    with pytest.raises(ParameterError, match=said):
        to_plain((value,))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gap": "small"}, "gap: expected a number, got 'small'"),
        ({"on": 1}, "on: expected true or false, got 1"),
        ({"w": [1.0]}, "w: expected an array"),
        ({"inner": {"name": "a"}}, "inner.count: is missing"),
        ({"several": [{"name": 1, "count": 0}]}, r"several\[0\].name: expected a text, got 1"),
        ({"more": 1}, "more: is not known"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(changes, said):
    plain = to_plain(State(w=np.zeros(2))) | changes
    with pytest.raises(CheckpointError, match=said):
        restore(State, plain)
    with pytest.raises(PlainDataError, match=said):
        from_plain(State, plain)
