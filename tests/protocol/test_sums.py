"""Sums are exact: against fractions, in any order, in any grouping, and never beyond what the ring holds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ProtocolError, SignalError
from silograph.graph.pairs import Pairs
from silograph.protocol.checks import check_update
from silograph.protocol.fixed import (
    BLOCK,
    FRACTION_BITS,
    LARGEST_TERM,
    MOST_TERMS,
    Rounding,
    add_limbs,
    add_vector,
    fixed_to_number,
    number_to_fixed,
    sum_vectors,
    vector_of,
    whole_numbers,
    zeros,
)
from silograph.protocol.messages import BOUND, COSTS, FLAG, FORCE, OBJECTIVE, Field, Header, Task, parts_of, update_of
from silograph.protocol.sums import add_some, add_up, combine, open_total
from silograph.protocol.units import LARGEST_COST, SMALLEST_COST, Units, check_costs, unit_for

HEADER = Header(run="0f", method="exact", step="mix", round=7)
FIELDS = {"force": Field("pairs", "slope"), "primal": OBJECTIVE, "bound": BOUND, "products": Field("list", "energy")}
UNITS = Units(alpha=3.0, quadratic=0.1)

terms = st.floats(-1e24, 1e24, allow_nan=False)
units = st.integers(-60, 60)
roundings = st.sampled_from(Rounding)


def updates_of(seed: int, n_silos: int, n_pairs: int = 5) -> list:
    rng = np.random.default_rng(seed)

    def some(shape=()):
        return rng.normal(size=shape) * 10.0 ** rng.uniform(-40, 20, size=shape)

    return [
        update_of(
            HEADER,
            f"silo {i}",
            {"force": some(n_pairs), "primal": float(some()), "bound": float(some()), "products": some(3)},
        )
        for i in range(n_silos)
    ]


def bits(parts) -> dict:
    return {name: np.asarray(part).tobytes() for name, part in parts.items()}


# --- whole numbers ----------------------------------------------------------------------------------------------------


@given(x=terms, unit=units, rounding=roundings)
def test_a_number_is_off_by_less_than_a_step_and_on_the_side_that_was_asked_for(x, unit, rounding):
    step = Fraction(2) ** (unit - FRACTION_BITS)
    off = number_to_fixed(x, unit, rounding) * step - Fraction(x)
    assert abs(off) <= (step / 2 if rounding is Rounding.NEAREST else step)
    assert rounding is not Rounding.UP or off >= 0
    assert rounding is not Rounding.DOWN or off <= 0


@given(whole=st.integers(-(2**180), 2**180), unit=units, rounding=roundings)
def test_a_whole_number_is_read_as_the_nearest_float_or_the_next_outward(whole, unit, rounding):
    exact = whole * Fraction(2) ** (unit - FRACTION_BITS)
    x = fixed_to_number(whole, unit, rounding)
    if rounding is Rounding.NEAREST:
        assert x == float(exact)
    elif rounding is Rounding.UP:
        assert Fraction(float(np.nextafter(x, -np.inf))) < exact <= Fraction(x)
    else:
        assert Fraction(x) <= exact < Fraction(float(np.nextafter(x, np.inf)))


@given(rows=st.lists(st.lists(terms, min_size=4, max_size=4), min_size=1, max_size=6), unit=units, rounding=roundings)
def test_vectors_add_up_as_numbers_do(rows, unit, rounding):
    limbs = zeros(4)
    for row in rows:
        add_vector(limbs, np.array(row) * 2.0**unit, unit, rounding)
    whole = [sum(number_to_fixed(row[k] * 2.0**unit, unit, rounding) for row in rows) for k in range(4)]
    assert whole_numbers(limbs) == whole
    read = [fixed_to_number(one, unit, rounding) for one in whole]
    np.testing.assert_array_equal(vector_of(limbs, unit, rounding), read)


@given(
    rows=st.lists(st.lists(terms, min_size=4, max_size=4), min_size=1, max_size=6),
    unit=st.one_of(units, st.sampled_from([-1000, -901, 899, 900])),
    rounding=roundings,
)
def test_terms_summed_at_once_have_the_bits_of_their_whole_numbers(rows, unit, rounding):
    scaled = [np.ldexp(row, unit) for row in rows]
    whole = [sum(number_to_fixed(float(row[k]), unit, rounding) for row in scaled) for k in range(4)]
    expected = np.array([fixed_to_number(one, unit, rounding) for one in whole])
    assert sum_vectors(scaled, unit, rounding).tobytes() == expected.tobytes()


@given(seed=st.integers(0, 2**32 - 1), n_terms=st.integers(1, 40), spread=st.sampled_from([0, 3, 12, 30]))
def test_terms_of_all_sizes_summed_at_once_have_the_bits_of_their_limbs(seed, n_terms, spread):
    rng = np.random.default_rng(seed)
    shape = n_terms, BLOCK + 7
    rows = rng.normal(size=shape) * 10.0 ** rng.uniform(-spread, spread / 2, size=shape) * (rng.random(shape) < 0.7)
    rows[-1] = np.where(rng.random(shape[1]) < 0.3, -rows[:-1].sum(axis=0), rows[-1])  # what nearly cancels
    limbs = zeros(shape[1])
    for row in rows:
        add_vector(limbs, row, 0, Rounding.NEAREST)
    assert sum_vectors(list(rows), 0, Rounding.NEAREST).tobytes() == vector_of(limbs, 0, Rounding.NEAREST).tobytes()


@given(left=st.lists(terms, min_size=3, max_size=3), right=st.lists(terms, min_size=3, max_size=3))
def test_two_sums_add_as_their_whole_numbers(left, right):
    sums = [zeros(3), zeros(3)]
    for limbs, values in zip(sums, (left, right), strict=True):
        add_vector(limbs, np.array(values), 0, Rounding.NEAREST)
    expected = [a + b for a, b in zip(*map(whole_numbers, sums), strict=True)]
    add_limbs(*sums)
    assert whole_numbers(sums[0]) == expected


@given(x=terms, unit=units)
def test_a_term_that_was_rounded_to_a_step_is_a_float64_still(x, unit):
    once = fixed_to_number(number_to_fixed(x, unit, Rounding.NEAREST), unit, Rounding.NEAREST)
    assert number_to_fixed(once, unit, Rounding.DOWN) == number_to_fixed(x, unit, Rounding.NEAREST)


def test_as_many_of_the_largest_terms_as_may_be_do_not_wrap():
    largest = float(np.nextafter(LARGEST_TERM, 0))
    limbs = zeros(2)
    add_vector(limbs, np.array([largest, -largest]), 0, Rounding.NEAREST)
    for _ in range(int(np.log2(MOST_TERMS))):
        add_limbs(limbs, limbs.copy())
    np.testing.assert_array_equal(vector_of(limbs, 0, Rounding.NEAREST), [MOST_TERMS * largest, -MOST_TERMS * largest])


# --- sums of updates --------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), n_silos=st.integers(2, 8), n_groups=st.integers(2, 5))
def test_any_order_and_any_grouping_give_the_same_bits(seed, n_silos, n_groups):
    rng, updates = np.random.default_rng(seed), updates_of(seed, n_silos)
    expected = bits(add_up(updates, FIELDS, UNITS).parts)
    group = rng.integers(n_groups, size=n_silos)
    groups = [[updates[i] for i in rng.permutation(n_silos) if group[i] == g] for g in range(n_groups)]
    subtotals = [add_some(some, FIELDS, UNITS, source=f"site {number}") for number, some in enumerate(groups) if some]
    total = open_total(combine([subtotals[g] for g in rng.permutation(len(subtotals))]), FIELDS, UNITS)
    assert bits(total.parts) == expected
    assert total.n_silos == n_silos


@given(seed=st.integers(0, 2**32 - 1), n_silos=st.integers(1, 6))
def test_sums_are_right_and_bounds_lie_outside(seed, n_silos):
    updates = updates_of(seed, n_silos)
    total = add_up(updates, FIELDS, UNITS)
    exact = {name: sum(Fraction(parts_of(one)[name]) for one in updates) for name in ("primal", "bound")}
    assert Fraction(total.number("primal")) >= exact["primal"]
    assert Fraction(total.number("bound")) <= exact["bound"]
    for k, got in enumerate(total.vector("force")):
        force = sum(Fraction(parts_of(one)["force"][k]) for one in updates)
        step = Fraction(2) ** (UNITS.exponents["slope"] - FRACTION_BITS)
        assert abs(Fraction(float(got)) - force) <= n_silos * step + abs(force) * Fraction(2) ** -52


def test_a_subtotal_leaves_its_parts_as_they_were():
    subtotals = [add_some(updates_of(k, 2), FIELDS, UNITS, source=f"site {k}") for k in (1, 2)]
    before = subtotals[0].parts["force"].copy()
    combine(subtotals)
    np.testing.assert_array_equal(subtotals[0].parts["force"], before)


# --- what does not fit is refused by name -----------------------------------------------------------------------------

SUMMED = {"force": FORCE, "fused": FLAG, "cost": COSTS, "primal": OBJECTIVE}
SOUND = {"force": np.zeros(3), "fused": 1.0, "cost": np.ones(3), "primal": -1.0}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"force": np.array([0.6, -0.6, 0.6])}, "force: expected a force of at most 1"),
        ({"force": np.array([0.0, 2.0, 0.0])}, "force: expected numbers up to 1"),
        ({"fused": 0.5}, "fused: expected 0 or 1, got 0.5"),
        ({"fused": 2.0}, "fused: expected 0 or 1, got 2"),
        ({"cost": np.array([1.0, 4.1, 0.0])}, "cost: expected numbers up to 4"),
        ({"cost": np.array([1.0, -1e-9, 0.0])}, "cost: expected numbers ≥ 0"),
        ({"primal": 2.0**90}, "primal: expected numbers up to"),
        ({"primal": np.nan}, "primal: expected finite"),
    ],
)
def test_a_lie_in_finite_numbers_is_refused_by_silo_round_and_field(part, said):
    limits = Units(rho=1.0, largest_cost=4.0)
    task = Task(header=HEADER, parts={})
    check_update(update_of(HEADER, "lima", SOUND), task, SUMMED, pairs=Pairs.all(3), units=limits)
    with pytest.raises(ProtocolError, match=f"lima, round 7 .exact, mix., {said}"):
        check_update(update_of(HEADER, "lima", SOUND | part), task, SUMMED, pairs=Pairs.all(3), units=limits)


@pytest.mark.parametrize("size", [1e-26, 1e-12, 1.0, 1e17, 1e30])
def test_a_unit_is_found_for_costs_of_any_size(size):
    cost = size * np.linspace(0.1, 10, 20)
    unit = unit_for([cost, 3 * cost])
    check_costs(cost, unit, "lima")
    assert np.frexp(unit)[0] == 0.5
    assert (unit == 1.0) == (SMALLEST_COST <= size <= LARGEST_COST / 100)


@pytest.mark.parametrize("size", [1e-12, 1e19])
def test_costs_that_do_not_fit_the_unit_are_refused_with_the_table_named(size):
    with pytest.raises(SignalError, match=r"lima\.csv: expected mean squared differences .* another cost_unit"):
        check_costs(np.full(3, size), 1.0, "lima.csv")
