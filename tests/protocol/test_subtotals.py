"""A sum over a site's silos: on the wire to the last bit, checked by what so many silos can say, and never trusted."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ProtocolError
from silograph.graph.pairs import Pairs
from silograph.protocol.checks import check_subtotal
from silograph.protocol.codec import (
    HEAD,
    MAGIC,
    SUBTOTAL,
    WIRE_FORMAT,
    decode_answer,
    decode_subtotal,
    encode_subtotal,
    encode_update,
)
from silograph.protocol.fixed import LARGEST_TERM, RING, limbs_of, number_to_fixed, whole_numbers, width_of
from silograph.protocol.messages import COSTS, FLAG, FORCE, OBJECTIVE, Field, Header, Rounding, Task, Update, update_of
from silograph.protocol.sums import Subtotal, add_some, combine, open_total
from silograph.protocol.units import Units

HEADER = Header(run="0f", method="exact", step="mix", round=7)
TASK = Task(header=HEADER, parts={"asked": np.zeros(2)})
FIELDS = {
    "force": FORCE,
    "fused": FLAG,
    "cost": COSTS,
    "primal": OBJECTIVE,
    "products": Field("list", "energy", one_longer_than="asked"),
}
UNITS, PAIRS = Units(rho=1.0, largest_cost=4.0), Pairs.all(3)


def sum_of(n_silos: int, **changed) -> Subtotal:
    """A sum that is as large as so many silos can make it, but for what is changed."""
    parts = {"force": np.array([1.0, 0.0, 0.0]), "fused": 1.0, "cost": np.full(3, 4.0), "primal": -1.0}
    updates = [update_of(HEADER, f"silo {k}", {**parts, "products": np.ones(3)}) for k in range(n_silos)]
    return replace(add_some(updates, FIELDS, UNITS, source="lima"), **changed)


def check(subtotal: Subtotal) -> None:
    check_subtotal(subtotal, TASK, FIELDS, pairs=PAIRS, units=UNITS)


def fixed(value: float, name: str) -> int:
    return number_to_fixed(value, UNITS.exponents[FIELDS[name].unit], Rounding.NEAREST)


def limbs(values, name: str) -> np.ndarray:
    return np.concatenate([limbs_of(fixed(value, name)) for value in values])


# --- as bytes ---------------------------------------------------------------------------------------------------------


@given(
    whole=st.lists(st.integers(-(RING // 2), RING // 2 - 1), max_size=5),
    number=st.integers(-(RING // 2), RING // 2 - 1),
    n_silos=st.integers(1, 2**15),
)
def test_a_sum_that_was_sent_is_the_sum_to_the_last_bit(whole, number, n_silos):
    vector = np.concatenate([np.zeros((0, 3), dtype=np.uint64), *(limbs_of(one) for one in whole)])
    told = {"lima": {"samples": 40.0}}
    sent = Subtotal(header=HEADER, source="lima", n_silos=n_silos, parts={"a": vector, "b": number}, reported=told)
    got = decode_answer(encode_subtotal(sent))
    assert isinstance(got, Subtotal)
    assert whole_numbers(got.parts["a"]) == whole
    assert (got.parts["b"], got.n_silos, got.source, got.header, got.reported) == (
        number,
        n_silos,
        "lima",
        HEADER,
        told,
    )


@given(st.integers(-(RING // 2), RING // 2 - 1))
def test_no_more_limbs_are_sent_than_tell_the_number(whole):
    width = width_of(limbs_of(whole))
    assert -(2 ** (64 * width - 1)) <= whole < 2 ** (64 * width - 1)
    assert width == 1 or not -(2 ** (64 * width - 65)) <= whole < 2 ** (64 * width - 65)


def test_an_answer_of_one_silo_is_an_update_still():
    update = update_of(HEADER, "lima", {"primal": -1.0})
    assert isinstance(decode_answer(encode_update(update)), Update)


def message(body: bytes = b"\1" * 24, **changed) -> bytes:
    about = {
        "header": {"run": "0f", "method": "exact", "step": "mix", "round": 7},
        "silo": "lima",
        "n_silos": 5,
        "reported": {},
        "parts": [["primal", -1]],
        "widths": [3],
    }
    text = json.dumps(about | changed).encode()
    return HEAD.pack(MAGIC, WIRE_FORMAT, SUBTOTAL, len(text), len(body)) + text + body


@pytest.mark.parametrize(
    "damaged",
    [
        {"widths": [0]},
        {"widths": [4]},
        {"widths": [-1]},
        {"widths": [2]},
        {"widths": [10**9]},
        {"widths": ["3"]},
        {"widths": [True]},
        {"widths": None},
        {"widths": []},
        {"widths": [3, 3]},
        {"parts": [["primal", 2]]},
        {"parts": [["primal", 2**40]]},
        {"parts": [["primal", -1, 0]]},
        {"parts": [["primal", -1], ["primal", -1]], "widths": [1, 2]},
        {"parts": [["cost", 3, 3]]},
        {"parts": "primal"},
        {"n_silos": 0},
        {"n_silos": -5},
        {"n_silos": 5.0},
        {"n_silos": None},
        {"reported": ["samples"]},
        {"reported": {"samples": "40"}},
        {"reported": {"samples": 40}},
        {"silo": None},
        {"header": {}},
        {"body": b"\1" * 23},
        {"body": b""},
        {"body": b"\1" * 48},
    ],
    ids=str,
)
def test_damaged_limbs_are_refused(damaged):
    decode_subtotal(message())
    with pytest.raises(ProtocolError, match="message: "):
        decode_subtotal(message(**damaged))


def test_more_numbers_than_an_answer_can_have_are_refused_before_they_are_read():
    large = message(parts=[["primal", 10**6]], widths=[1], body=bytes(8 * 10**6))
    with pytest.raises(ProtocolError, match="claims more numbers"):
        decode_subtotal(large, n_pairs=10**6, most=1000)
    with pytest.raises(ProtocolError, match="is not possible"):
        decode_subtotal(large, n_pairs=1000)


# --- believed as far as so many silos can have said it --------------------------------------------------------------


@pytest.mark.parametrize("n_silos", [1, 5, 2**15])
def test_the_largest_sum_of_so_many_silos_passes(n_silos):
    subtotal = sum_of(min(n_silos, 5))
    parts = {name: part * (n_silos // 5 or 1) for name, part in subtotal.parts.items() if isinstance(part, int)}
    check(replace(subtotal, n_silos=max(n_silos, subtotal.n_silos), parts={**subtotal.parts, **parts}))


LIES = {
    "force in all": ({"force": limbs([3.5, -3.5, 3.5], "force")}, "force: expected a force of at most 5"),
    "force": ({"force": limbs([0.0, 5.1, 0.0], "force")}, "force: expected numbers up to 5"),
    "flag": ({"fused": fixed(4.5, "fused")}, "fused: expected a whole number from 0 to 5, got 4.5"),
    "flags": ({"fused": fixed(6, "fused")}, "fused: expected a whole number from 0 to 5, got 6"),
    "no flag": ({"fused": fixed(-1, "fused")}, "fused: expected a whole number"),
    "cost": ({"cost": limbs([20.1, 0, 0], "cost")}, "cost: expected numbers up to 20"),
    "negative": ({"cost": limbs([-1e-20, 0, 0], "cost")}, "cost: expected numbers ≥ 0"),
    "beyond the ring": ({"primal": fixed(5.01 * LARGEST_TERM, "primal")}, "primal: expected numbers up to"),
    "as large as the ring": ({"primal": RING // 2 - 1}, "primal: expected numbers up to"),
    "shape": ({"cost": limbs([1.0, 1.0], "cost")}, "cost: expected shape"),
    "number for a vector": ({"cost": 1}, "cost: expected shape"),
    "vector for a number": ({"primal": limbs([1.0], "primal")}, "primal: expected shape"),
    "list": ({"products": limbs([1.0, 1.0], "products")}, "products: expected 3 numbers, got 2"),
    "one more": ({"signals": 1}, "expected .*'primal'.*got"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_a_sum_is_refused_by_site_round_and_field(lie):
    parts, said = LIES[lie]
    subtotal = sum_of(5)
    check(subtotal)
    with pytest.raises(ProtocolError, match=f"lima, round 7.*{said}"):
        check(replace(subtotal, parts={**subtotal.parts, **parts}))


@pytest.mark.parametrize(
    "reported",
    [
        {"lima": {"edges": 3.0}},
        {"lima": {"contribution": 1.0}},
        {"lima": {"samples": -1.0}},
        {"oslo": {"samples": 1.0}},
    ],
)
def test_of_several_silos_nothing_is_told_but_their_samples(reported):
    check(sum_of(5, reported={"lima": {"samples": 40.0}}))
    with pytest.raises(ProtocolError, match="lima, round 7"):
        check(sum_of(5, reported=reported))


def test_numbers_beyond_any_float_are_refused_and_break_nothing():
    huge = Units(alpha=1e300, quadratic=1.0)
    with pytest.raises(ProtocolError, match=r"beyond any float64|expected"):
        check_subtotal(
            replace(sum_of(5), parts={**sum_of(5).parts, "primal": RING // 2 - 1}),
            TASK, FIELDS, pairs=PAIRS, units=huge,
        )  # fmt: skip


def test_sums_as_large_as_they_may_be_do_not_wrap_together():
    most = 2**15 // 4
    largest = number_to_fixed(most * LARGEST_TERM * (1 - 2**-53), UNITS.exponents["energy"], Rounding.NEAREST)
    sites = [
        Subtotal(header=HEADER, source=f"site {k}", n_silos=most, parts={"primal": largest}, reported={})
        for k in range(4)
    ]
    for one in sites:
        check_subtotal(one, TASK, {"primal": OBJECTIVE}, pairs=PAIRS, units=UNITS)
    total = open_total(combine(sites), {"primal": OBJECTIVE}, UNITS)
    assert total.n_silos == 2**15
    assert total.number("primal") == pytest.approx(2**15 * LARGEST_TERM)
    with pytest.raises(ProtocolError, match="at most 32768 silos"):
        combine([*sites, replace(sites[0], source="one more", n_silos=1)])
    with pytest.raises(ProtocolError, match="two of 'site 0'"):
        combine([sites[0], sites[0]])
