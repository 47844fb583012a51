import json
import struct
import tracemalloc
from dataclasses import fields
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ProtocolError
from silograph.graph.pairs import Pairs
from silograph.protocol.checks import LONGEST_LIST, REPORTABLE, check_parts, check_update
from silograph.protocol.codec import (
    HEAD,
    MAGIC,
    WIRE_FORMAT,
    decode_task,
    decode_update,
    encode_task,
    encode_update,
    largest_update,
)
from silograph.protocol.messages import (
    LIST,
    NUMBER,
    NUMBER_NONNEGATIVE,
    PAIRS,
    PAIRS_NONNEGATIVE,
    Header,
    Task,
    Total,
    Update,
    parts_of,
    update_of,
)
from silograph.protocol.sums import add_up
from silograph.protocol.units import Units

HEADER = Header(run="0f", method="exact", step="mix", round=7)
TASK, UPDATE = 0, 1
DECODERS = (decode_task, decode_update)

any_bits = st.lists(st.integers(0, 2**64 - 1), max_size=20).map(lambda bits: np.array(bits, np.uint64).view(np.float64))
any_number = st.floats(allow_nan=False)
any_text = st.text(st.characters() | st.characters(categories=["Cs"]), min_size=1)  # lone surrogates too, see below
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def bits(value: np.ndarray | float) -> tuple[tuple[int, ...], bytes]:
    """Shape and bits: −0.0 is not 0.0, and a number is not a list of one."""
    return np.shape(value), np.asarray(value, dtype="<f8").tobytes()


SUMMED = {"force": PAIRS, "primal": NUMBER, "other": NUMBER, "more": NUMBER}


def total_of(updates: list[Update]) -> Total:
    """The sum, in units of one."""
    return add_up(updates, SUMMED, Units())


def held(update: Update) -> dict:
    """What an update holds, to the last bit."""
    return {name: bits(value) for name, value in parts_of(update).items()}


def a_task() -> bytes:
    return encode_task(Task(header=HEADER, parts={"u": np.array([0.5, -2.0]), "accuracy": 1e-5}))


def an_update() -> bytes:
    parts = {"force": np.array([1.0, 2.0]), "fused": 1.0}
    return encode_update(update_of(HEADER, "Zürich", parts, reported={"samples": 30.0, "edges": 4.0}))


def made(kind: int, header: object, numbers: tuple[float, ...] = (), declared: int | None = None) -> bytes:
    """A message with any header, and any number of numbers declared."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    n_numbers = len(numbers) if declared is None else declared
    body = np.array(numbers, dtype="<f8").tobytes()
    return HEAD.pack(MAGIC, WIRE_FORMAT, kind, len(text), n_numbers) + text + body


def header_of(message: bytes) -> dict:
    return json.loads(message[HEAD.size : HEAD.size + HEAD.unpack_from(message)[3]])


def is_refused(data: bytes) -> bool:
    """Whether both decoders refuse, with a ProtocolError: any other error goes on to the test."""
    refusals = 0
    for decode in DECODERS:
        try:
            decode(data)
        except ProtocolError:
            refusals += 1
    return refusals == len(DECODERS)


# --- what arrives is what was sent ------------------------------------------------------------------------------------


@given(vector=any_bits, number=any_number)
def test_a_task_arrives_to_the_last_bit(vector, number):
    task = decode_task(encode_task(Task(header=HEADER, parts={"u": vector, "accuracy": number})))
    assert task.header == HEADER
    assert bits(task.parts["u"]) == bits(vector)
    assert bits(task.parts["accuracy"]) == bits(number)


@pytest.mark.parametrize("number", [0.0, -0.0, 5e-324, -2.2e-308, 1.7976931348623157e308, np.inf, -np.inf, np.pi])
def test_a_number_arrives_as_the_same_number(number):
    task = decode_task(encode_task(Task(header=HEADER, parts={"accuracy": number})))
    assert struct.pack("<d", task.parts["accuracy"]) == struct.pack("<d", number)


@given(
    vector=st.lists(any_number, max_size=9).map(np.array),
    number=any_number,
    told=st.dictionaries(any_text, any_number, max_size=4),
)
def test_an_update_arrives_to_the_last_bit(vector, number, told):
    sent = update_of(HEADER, "a", {"force": vector.astype(float), "primal": number}, reported=told)
    got = decode_update(encode_update(sent))
    assert got.header == HEADER
    assert held(got) == held(sent)
    assert {name: bits(value) for name, value in got.reported.items()} == {k: bits(v) for k, v in told.items()}


@given(silo=any_text, run=any_text)
def test_silos_and_runs_may_have_any_name(silo, run):
    header = Header(run=run, method="exact", step="mix", round=2**40)
    got = decode_update(encode_update(update_of(header, silo, {"primal": 1.0})))
    assert (got.silo, got.header) == (silo, header)


def test_a_silo_named_after_a_file_whose_name_is_not_utf8_can_answer():
    silo = b"Z\xfcrich.csv".decode("utf-8", "surrogateescape")  # as Python reads file names
    assert decode_update(encode_update(update_of(HEADER, silo, {"primal": 1.0}))).silo == silo


def test_a_view_with_strides_arrives_as_its_numbers():
    view = np.arange(10.0)[::-3]
    assert bits(decode_task(encode_task(Task(header=HEADER, parts={"u": view}))).parts["u"]) == bits(view.copy())


def test_what_arrives_passes_the_check_that_what_was_sent_passed():
    expected = {"u": PAIRS, "accuracy": NUMBER, "mixing": LIST, "none": LIST}
    parts = {"u": np.array([1.0, -2.0]), "accuracy": 0.5, "mixing": np.array([3.0]), "none": np.zeros(0)}
    arrived = decode_task(encode_task(Task(header=HEADER, parts=parts))).parts
    check_parts(parts, expected, pairs=Pairs.listed(3, [(0, 1), (1, 2)]), header=HEADER, source="task")
    check_parts(arrived, expected, pairs=Pairs.listed(3, [(0, 1), (1, 2)]), header=HEADER, source="task")


# --- adding up --------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), n_silos=st.integers(1, 5), n_pairs=st.integers(0, 6))
def test_a_sum_does_not_depend_on_the_order_of_silos_to_the_last_bit(seed, n_silos, n_pairs):
    rng = np.random.default_rng(seed)

    def some(shape):
        return rng.choice([-1.0, 1.0, 0.0, -0.0], size=shape) * 10.0 ** rng.uniform(-320, 26, size=shape)

    updates = [
        update_of(HEADER, f"silo {i}", {"force": some(n_pairs), "primal": float(some(()))}) for i in range(n_silos)
    ]
    sums = {tuple(map(bits, total_of(order).parts.values())) for order in permutations(updates)}
    assert len(sums) == 1


@given(rows=st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), min_size=1, max_size=6))
def test_whole_numbers_add_up_exactly(rows):
    updates = [update_of(HEADER, f"{i}", {"force": np.array(row, float)}) for i, row in enumerate(rows)]
    np.testing.assert_array_equal(total_of(updates).vector("force"), np.sum(rows, axis=0))


def test_an_update_does_not_offer_its_numbers():
    update = update_of(HEADER, "a", {"force": np.ones(3)}, reported={"edges": 2.0})
    assert [name for name in dir(update) if not name.startswith("_")] == ["header", "reported", "silo"]


def test_a_sum_holds_no_more_than_the_sum_and_what_was_told_singly():
    total = total_of([update_of(HEADER, name, {"force": np.ones(3)}, reported={"edges": 2.0}) for name in "ab"])
    assert {field.name for field in fields(total)} == {"header", "n_silos", "parts", "reported"}
    assert total.parts["force"].base is None, "a view would bring the silos' vectors along"
    assert total.reported == {"a": {"edges": 2.0}, "b": {"edges": 2.0}}


def test_changing_a_sum_does_not_change_a_silos_vector():
    own = np.ones(3)
    total_of([update_of(HEADER, "a", {"force": own})]).vector("force")[:] = 5.0
    np.testing.assert_array_equal(own, 1.0)


def test_no_answers_have_no_sum():
    with pytest.raises(ProtocolError, match="No silo answered"):
        total_of([])


def test_answers_to_different_tasks_do_not_total_of():
    later = Header(run="0f", method="exact", step="mix", round=8)
    with pytest.raises(ProtocolError, match=r"late.*round=7.*round=8"):
        total_of([update_of(HEADER, "a", {"primal": 1.0}), update_of(later, "late", {"primal": 1.0})])


def test_a_silo_answers_once():
    with pytest.raises(ProtocolError, match="two of 'a'"):
        total_of([update_of(HEADER, name, {"primal": 1.0}) for name in "aba"])


@pytest.mark.parametrize(
    "parts",
    [{}, {"other": 1.0}, {"force": np.ones(3)}, {"force": 1.0}, {"force": np.ones(2), "more": 1.0}],
    ids=["nothing", "another part", "another length", "a number", "one more"],
)
def test_answers_of_different_form_do_not_total_of(parts):
    with pytest.raises(ProtocolError, match="odd"):
        total_of([update_of(HEADER, "a", {"force": np.ones(2)}), update_of(HEADER, "odd", parts)])


# --- what is malformed is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [a_task(), an_update()], ids=["task", "update"])
def test_a_message_cut_anywhere_is_refused(message):
    assert all(is_refused(message[:length]) for length in range(len(message)))
    assert is_refused(message + b"\0")


@pytest.mark.parametrize("message", [a_task(), an_update()], ids=["task", "update"])
def test_a_message_with_one_bit_flipped_is_refused_or_read_but_never_breaks(message):
    for place in range(8 * len(message)):
        flipped = bytearray(message)
        flipped[place // 8] ^= 1 << place % 8
        is_refused(bytes(flipped))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ((b"PK\3\4", WIRE_FORMAT, TASK), "something else"),
        ((MAGIC, WIRE_FORMAT + 1, TASK), f"expected format {WIRE_FORMAT}, got {WIRE_FORMAT + 1}"),
        ((MAGIC, 0, TASK), f"expected format {WIRE_FORMAT}, got 0"),
        ((MAGIC, WIRE_FORMAT, UPDATE), "expected a task"),
        ((MAGIC, WIRE_FORMAT, 255), "expected a task"),
    ],
)
def test_a_message_with_a_foreign_head_is_refused_by_what_is_foreign(head, said):
    with pytest.raises(ProtocolError, match=said):
        decode_task(HEAD.pack(*head, 2, 0) + b"{}")


def test_a_task_is_no_update():
    with pytest.raises(ProtocolError, match="expected an update"):
        decode_update(a_task())


def test_junk_of_any_size_is_refused(rng):
    sizes = [*range(200), 2**10, 2**16, 2**20]
    assert all(is_refused(rng.bytes(size)) for size in sizes)
    assert all(is_refused(bytes(size)) for size in sizes)
    assert all(is_refused((MAGIC + rng.bytes(size))[:size]) for size in sizes)


@pytest.mark.parametrize("declared", [1, 2**31, 2**31 + 1, 2**40, 2**61, 2**64 - 1])
def test_a_huge_declared_size_costs_no_memory(declared):
    in_head = HEAD.pack(MAGIC, WIRE_FORMAT, TASK, 2**32 - 1, declared) + b"{}"
    in_header = {**header_of(a_task()), "parts": [["u", declared]]}
    tracemalloc.start()
    try:
        assert is_refused(in_head)
        assert is_refused(made(TASK, header_of(a_task()), declared=declared))
        assert is_refused(made(TASK, in_header))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("n_pairs", [1, 5000])
def test_every_update_of_a_step_is_within_its_limit_and_is_read_back(n_pairs):
    step = {"force": PAIRS, "graph": PAIRS, "products": LIST, "primal": NUMBER}
    rng = np.random.default_rng(0)
    parts = {"force": rng.normal(size=n_pairs), "graph": rng.normal(size=n_pairs)}
    parts |= {"products": rng.normal(size=LONGEST_LIST), "primal": 1.0}
    told = dict.fromkeys(REPORTABLE, 1.0)
    header = Header(run="r" * 200, method="m" * 40, step="s" * 40, round=10**9)
    data, most = encode_update(update_of(header, "z" * 40, parts, reported=told)), largest_update(step, n_pairs)
    assert len(data) <= most
    assert set(parts_of(decode_update(data, n_pairs=n_pairs, most=most))) == set(step)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"header":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"parts":' + b"9" * 100_000 + b"}",
        b'{"parts":[["u",' + b"9" * 4000 + b"]]}",
        b'{"parts":1e999999}',
        b"\xff\xfe\0",
        b"\0\0\0{",
        b"\xef\xbb\xbf",
        b'"\\ud800"',
        b"NaN",
        b"",
    ],
    ids=lambda text: text[:12].decode("latin-1") + f" ({len(text)})",
)
def test_a_header_that_is_a_bomb_or_no_json_is_refused(text):
    assert is_refused(made(TASK, text))
    assert is_refused(made(UPDATE, text))


@pytest.mark.parametrize(
    ("parts", "numbers"),
    [
        ([["u", 1], ["u", 1]], 2),
        ([["u", 2]], 1),
        ([["u", 1]], 2),
        ([["u", -1]], 0),
        ([["u", -2]], 0),
        ([["u", 1.0]], 1),
        ([["u", True]], 1),
        ([["u", "1"]], 1),
        ([["u"]], 1),
        ([["u", 1, 1]], 1),
        ([[1, 1]], 1),
        (["u1"], 1),
        ([{"u": 1}], 1),
        ([["", 1]], 1),
        ([["U", 1]], 1),
        ([["u\n", 1]], 1),
        ([["../u", 1]], 1),
        ([["u" * 41, 1]], 1),
        ({"u": 1}, 1),
        (None, 0),
        ("u", 1),
    ],
)
def test_parts_that_do_not_fit_the_numbers_are_refused(parts, numbers):
    for kind, message in ((TASK, a_task()), (UPDATE, an_update())):
        extra = {"reported": []} if kind == UPDATE else {}
        assert is_refused(made(kind, {**header_of(message), **extra, "parts": parts}, (1.0,) * numbers))


@pytest.mark.parametrize(
    "header",
    [
        None,
        [],
        {},
        {"run": "0f", "method": "exact", "step": "mix"},
        {"run": "0f", "method": "exact", "step": "mix", "round": 1, "more": 1},
        {"run": "0f", "method": "exact", "step": "mix", "round": -1},
        {"run": "0f", "method": "exact", "step": "mix", "round": 1.0},
        {"run": "0f", "method": "exact", "step": "mix", "round": True},
        {"run": "0f", "method": "exact", "step": None, "round": 1},
        {"run": 15, "method": "exact", "step": "mix", "round": 1},
    ],
)
def test_a_message_that_does_not_say_where_it_belongs_is_refused(header):
    assert is_refused(made(TASK, {"header": header, "parts": []}))
    assert is_refused(made(UPDATE, {"header": header, "parts": [], "silo": "a", "reported": []}))


@pytest.mark.parametrize(
    ("change", "numbers"),
    [
        ({"silo": None}, ()),
        ({"silo": 3}, ()),
        ({"reported": None}, ()),
        ({"reported": "ab"}, ()),
        ({"reported": [1]}, ()),
        ({"reported": ["edges"]}, ()),
        ({"reported": ["edges"], "parts": [["reported_0", 2]]}, (1.0, 2.0)),
        ({"reported": ["edges"], "parts": [["reported_0", 1]]}, (1.0,)),
        ({"reported": ["edges"], "parts": [["reported_0", 0]]}, ()),
        ({"reported": ["edges", "edges"], "parts": [["reported_0", -1], ["reported_1", -1]]}, (1.0, 2.0)),
    ],
)
def test_an_update_without_a_silo_or_with_numbers_told_amiss_is_refused(change, numbers):
    sound = {"header": header_of(an_update())["header"], "silo": "a", "reported": [], "parts": []}
    decode_update(made(UPDATE, sound))
    with pytest.raises(ProtocolError):
        decode_update(made(UPDATE, sound | change, numbers))


@given(key=st.sampled_from(["header", "parts", "silo", "reported"]), value=any_json, kind=st.sampled_from([0, 1]))
def test_any_json_in_place_of_a_header_entry_is_refused_or_read_but_never_breaks(key, value, kind):
    message = (a_task(), an_update())[kind]
    is_refused(made(kind, header_of(message) | {key: value}, (1.0, 2.0, 3.0)))


@given(value=any_json)
def test_any_json_in_place_of_a_header_is_refused(value):
    assert is_refused(made(TASK, value))
    assert is_refused(made(UPDATE, value))


def mutated(message: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, dropped, doubled or put in."""
    out = bytearray(message)
    for _ in range(rng.integers(1, 5)):
        place, length = int(rng.integers(len(out) + 1)), int(rng.integers(1, 5))
        kind = rng.integers(4)
        if kind == 0:
            out[place : place + length] = rng.bytes(length)
        elif kind == 1:
            del out[place : place + length]
        elif kind == 2:
            out[place:place] = out[place : place + length]
        else:
            out[place:place] = rng.choice([b"[", b"]", b"{", b",", b":", b'"', b"-", b"9", b"\0", b"\xff"])
    return bytes(out)


def test_thousands_of_mutated_messages_are_refused_or_read_but_never_break(rng):
    for number in range(2000):
        message = (a_task(), an_update())[number % 2]
        is_refused(mutated(message, rng))
        size = HEAD.unpack_from(message)[3]
        text = mutated(message[HEAD.size : HEAD.size + size], rng)  # all sizes right too: the inner checks remain
        is_refused(made(number % 2, text, (1.0,) * 5))


# --- what a message must hold -----------------------------------------------------------------------------------------

FIELDS = {"w": PAIRS_NONNEGATIVE, "force": PAIRS, "gap": NUMBER_NONNEGATIVE, "primal": NUMBER, "products": LIST}
SOUND = {"w": np.array([0.0, 1.0, 2.0]), "force": -np.ones(3), "gap": 0.0, "primal": -1.0, "products": np.ones(2)}


def check(parts):
    check_parts(parts, FIELDS, pairs=Pairs.all(3), header=HEADER, source="Zürich")


def test_parts_that_are_as_declared_pass():
    check(SOUND)
    check(SOUND | {"w": np.array([-0.0, 5e-324, 1e150]), "primal": np.float64(2.0), "products": np.zeros(0)})
    check(SOUND | {"products": np.ones(LONGEST_LIST)})


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("w", np.array([0.0, np.nan, 1.0]), "finite"),
        ("w", np.array([0.0, -1e-300, 1.0]), "≥ 0"),
        ("w", np.ones(2), r"expected shape \(3,\), got \(2,\)"),
        ("w", np.ones((3, 1)), r"\(3, 1\)"),
        ("w", 1.0, "shape"),
        ("w", np.ones(3, np.float32), "float32"),
        ("w", np.ones(3, np.int64), "int64"),
        ("w", np.ones(3, complex), "complex128"),
        ("w", np.array([1.0, 2.0, None]), "object"),
        ("force", np.array([0.0, np.inf, 1.0]), "finite"),
        ("force", np.array([0.0, -np.inf, 1.0]), "finite"),
        ("force", np.array([0.0, -1e308, 1.0]), "up to 1e\\+150"),
        ("primal", 1e308, "up to 1e\\+300"),
        ("force", np.zeros(0), "shape"),
        ("gap", -1e-9, "≥ 0"),
        ("gap", np.nan, "finite"),
        ("primal", np.inf, "finite"),
        ("primal", np.ones(1), "shape"),
        ("primal", 1, "int64"),
        ("primal", True, "bool"),
        ("primal", "1.0", "float64"),
        ("primal", None, "object"),
        ("products", 1.0, f"at most {LONGEST_LIST}"),
        ("products", np.ones((2, 2)), f"at most {LONGEST_LIST}"),
        ("products", np.ones(LONGEST_LIST + 1), f"at most {LONGEST_LIST}"),
        ("products", np.array([np.nan]), "finite"),
    ],
)
def test_a_part_that_is_not_as_declared_is_refused_by_silo_round_and_name(part, value, said):
    with pytest.raises(ProtocolError, match=said) as refusal:
        check(SOUND | {part: value})
    assert f"Zürich, round 7 (exact, mix), {part}: expected " in str(refusal.value)


def test_a_missing_part_is_refused_by_silo_and_round_with_what_was_expected():
    with pytest.raises(ProtocolError, match=r"Zürich, round 7 \(exact, mix\): expected .*'force'.*, got ") as refusal:
        check({name: value for name, value in SOUND.items() if name != "force"})
    assert "'force'" not in str(refusal.value).split("got")[1]


def test_an_extra_part_is_refused_by_silo_and_round_and_named():
    with pytest.raises(ProtocolError, match=r"Zürich, round 7 \(exact, mix\): expected .*, got .*'signals'"):
        check(SOUND | {"signals": np.ones(3)})


# --- on arrival -------------------------------------------------------------------------------------------------------


def arriving(header: Header = HEADER, told: dict | None = None, **parts) -> Update:
    return update_of(header, "north", parts or {"a": 1.0}, reported=told)


def test_an_answer_to_the_task_is_let_in():
    check_update(
        arriving(told={"contribution": np.inf}),
        Task(header=HEADER, parts={}),
        {"a": NUMBER},
        pairs=Pairs.all(3),
        units=Units(),
    )


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (arriving(Header(run="1f", method="exact", step="mix", round=7)), "north: expected an answer to .*run='0f'"),
        (arriving(Header(run="0f", method="exact", step="mix", round=6)), "round=7.*got one to .*round=6"),
        (arriving(Header(run="0f", method="other", step="mix", round=7)), "method='other'"),
        (arriving(b=1.0), r"north, round 7 \(exact, mix\): expected \['a'\], got \['b'\]"),
        (arriving(a=np.nan), "north.*a: expected finite"),
        (arriving(told={"signals": 1.0}), r"north, round 7: tells \['signals'\] of itself"),
    ],
)
def test_any_other_is_refused_with_the_silo_named(update, words):
    with pytest.raises(ProtocolError, match=words):
        check_update(update, Task(header=HEADER, parts={}), {"a": NUMBER}, pairs=Pairs.all(3), units=Units())
