"""The coordinator believes no site's answer unchecked: what cannot be right is kept aside, noted, and never added.

One site is hostile here. Its key is genuine, so that it can sign what it likes.
"""

import json
import random
import re
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from silograph.errors import ProtocolError
from silograph.federation.coordinator import quarantine
from silograph.federation.coordinator import request as site_request
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.coordinator.history import Event, History
from silograph.federation.coordinator.request import Silence
from silograph.federation.coordinator.run import CoordinatorRun, Outcome
from silograph.federation.envelope import HEAD, VerifiedMessage, open_message
from silograph.federation.refusals import REASONS
from silograph.protocol.codec import HEAD as MESSAGE_HEAD
from silograph.protocol.codec import decode_update, encode_update, largest_update
from silograph.protocol.messages import PAIRS, Header, Update, parts_of, update_of
from testing.conformance import EXACT, digests
from testing.consortium import Consortium, Loopback, close, rewrite, seal, self_signed

HOSTILE = "lima"
LONG = EXACT.replace("rounds = 4", "rounds = 12\ntol = 1e-13")  # long enough to mix, whose answers hold a list


@dataclass
class Hostile:
    """The hostile site: what it was asked, what an honest one would have answered, and its key."""

    consortium: Consortium
    asked: bytes
    honest: bytes
    before: list[bytes]  # its honest answers so far

    @property
    def head(self) -> dict:
        return open_message(self.asked, self.consortium.trust).head

    @property
    def reply(self) -> VerifiedMessage:
        return open_message(self.honest, self.consortium.trust)

    @property
    def update(self) -> Update:
        return decode_update(self.reply.body)

    def resealed(self, signer: str = HOSTILE, **changes) -> bytes:
        """The honest answer with changes in its head or another body, signed properly."""
        return rewrite(self.honest, self.consortium.authority.signer(signer), trust=self.consortium.trust, **changes)

    def with_parts(self, change: Callable[[str, object], object]) -> bytes:
        """The honest answer with its numbers changed."""
        parts = {name: change(name, part) for name, part in parts_of(self.update).items()}
        return self.with_update(parts=parts)

    def with_update(
        self, *, parts: dict | None = None, reported: dict | None = None, silo: str | None = None, **header
    ) -> bytes:
        update = self.update
        made = update_of(
            replace(update.header, **header),
            silo or update.silo,
            parts_of(update) if parts is None else parts,
            reported=update.reported if reported is None else reported,
        )
        return self.resealed(body=encode_update(made))


Attack = Callable[[Hostile], bytes | None]  # nothing: this answer cannot be spoiled so
FOR_EVER = 10**6


@dataclass
class Attacker:
    """Answers each request it chooses by each of its attacks first, so many times, and then as it should."""

    consortium: Consortium
    attacks: Sequence[Attack]
    when: Callable[[dict], bool] = lambda head: True  # of the request's head
    times: int = 1
    sent: list[bytes] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)  # its honest answers, to earlier requests
    _known: dict[str, tuple[bytes, Iterator[bytes]]] = field(default_factory=dict)

    def __call__(self, site: str, data: bytes, service: Callable[[bytes], bytes]) -> bytes | Silence:
        if site != HOSTILE:
            return service(data)
        asked = open_message(data, self.consortium.trust)
        if asked.digest not in self._known:
            honest = service(data)
            self._known[asked.digest] = honest, self._bad(dict(asked.head), data, honest)
        honest, bad = self._known[asked.digest]
        if (reply := next(bad, None)) is not None:
            self.sent.append(reply)
            return reply
        self.before.append(honest)
        return honest

    def _bad(self, head: dict, data: bytes, honest: bytes) -> Iterator[bytes]:
        if self.when(head):
            site = Hostile(self.consortium, data, honest, self.before)
            replies = (attack(site) for _ in range(self.times) for attack in self.attacks)
            yield from (reply for reply in replies if reply is not None)


@dataclass
class Ended:
    """How a run under attack ended."""

    run: CoordinatorRun
    outcome: Outcome
    attacker: Attacker
    consortium: Consortium

    @property
    def events(self) -> list[Event]:
        return History.open_read(self.run.history).events()

    @property
    def rejected(self) -> list[Event]:
        return [event for event in self.events if event.kind == "rejected" and event.file is not None]

    @property
    def results(self) -> dict[str, str]:
        return digests(self.run.folder / "results")


def attacked(folder: Path, *attacks: Attack, learn: str = EXACT, policy: str = "", **how) -> Ended:
    """A whole run with a hostile site in it."""
    consortium = Consortium(folder)
    attacker = Attacker(consortium, attacks, **how)
    run, services = consortium.run(learn, policy), consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services, attacker))
    close(services)
    return Ended(run, outcome, attacker, consortium)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Callable[[str], dict[str, str]]:
    known: dict[str, dict[str, str]] = {}

    def results(learn: str = EXACT) -> dict[str, str]:
        if learn not in known:
            consortium = Consortium(tmp_path_factory.mktemp("undisturbed"))
            known[learn] = digests(consortium.finish(consortium.run(learn)))
        return known[learn]

    return results


def assert_harmless(ended: Ended, undisturbed: dict[str, str]) -> None:
    """Every bad reply was noted and kept aside, and the result is that of a run without any."""
    assert ended.outcome.ended == "done", ended.outcome
    assert ended.attacker.sent
    assert ended.results == undisturbed
    assert [event.site for event in ended.rejected] == [HOSTILE] * len(ended.attacker.sent)
    assert all(event.reason and len(event.reason) <= site_request.LONGEST_REASON for event in ended.rejected)
    kept = ended.run.folder / "quarantine"
    for event, sent in zip(ended.rejected, ended.attacker.sent, strict=True):
        assert (kept / event.file).read_bytes() == sent[: quarantine.LARGEST_KEPT]
    record = json.loads((ended.run.folder / "results" / "run.json").read_text())
    assert record["federation"]["rejected_answers"] == len(ended.attacker.sent)


def is_round(head: dict) -> bool:
    return head["kind"] == "round"


def is_learning(head: dict) -> bool:
    return head.get("stage") == "learn"


def is_first(head: dict) -> bool:
    return is_learning(head) and head["round"] == 1


def is_last(head: dict) -> bool:
    return head.get("step") == "close"


@pytest.fixture
def patient(monkeypatch) -> None:
    """A coordinator that bears any number of bad answers, so that one run can try them all."""
    monkeypatch.setattr(site_request, "MOST_REJECTED", FOR_EVER)


@pytest.fixture
def hurried(monkeypatch) -> None:
    """A coordinator whose clock is ten times as fast."""
    clock = SimpleNamespace(monotonic=lambda: 10 * time.monotonic(), sleep=lambda seconds: time.sleep(seconds / 10))
    monkeypatch.setattr(site_request, "time", clock)


# --- numbers ------------------------------------------------------------------------------------------------------


def with_value(value: float) -> Attack:
    """One number in each part becomes this."""

    def change(name: str, part):
        return value if isinstance(part, float) else np.where(np.arange(part.size) == part.size - 1, value, part)

    return lambda site: site.with_parts(change)


@pytest.mark.usefixtures("patient")
def test_a_number_that_cannot_be_added_never_reaches_the_sum(tmp_path, undisturbed):
    values = (np.nan, np.inf, -np.inf, 1e308, -1e308)
    ended = attacked(tmp_path, *map(with_value, values), when=is_round)
    assert_harmless(ended, undisturbed())


def below_zero(name: str) -> Attack:
    def attack(site: Hostile) -> bytes | None:
        if name not in parts_of(site.update):
            return None
        return site.with_parts(lambda part_name, part: -1e-9 + 0 * part if part_name == name else part)

    return attack


def test_a_number_below_zero_is_rejected_where_none_can_be(tmp_path, undisturbed):
    attacks = map(below_zero, ("cost", "force_square", "metric", "fused", "graph"))
    ended = attacked(tmp_path, *attacks, when=lambda head: head["kind"] != "hello")
    assert len(ended.attacker.sent) >= 10
    assert_harmless(ended, undisturbed())


DEGREE = EXACT.replace("alpha = 0.5\nbeta = 0.25\n", "degree = 3\n")
LIES = {  # field → a finite number for each of its entries, that no honest site has
    "log_theta": 650.0,
    "degree": 1e9,
    "cost": 1e100,
    "fused": 1e6,
    "boundless": -3.0,
    "force": 1e20,
    "primal": 1e140,
    "bound": -1e200,
    "target": 1e120,
    "metric": 1e90,
}


def lying(field: str) -> Attack:
    def attack(site: Hostile) -> bytes | None:
        if field not in parts_of(site.update):
            return None
        return site.with_parts(lambda name, part: LIES[field] + 0 * part if name == field else part)

    return attack


@pytest.mark.parametrize("field", LIES)
def test_a_liar_with_finite_numbers_is_named_and_no_honest_site_is_blamed(tmp_path, field):
    ended = attacked(tmp_path, lying(field), learn=DEGREE, when=is_round, times=site_request.MOST_REJECTED)
    assert ended.outcome.ended == "trouble"
    (trouble,) = ended.outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "rejected")
    assert f", {field}: expected" in trouble["reason"]


def test_of_standardised_nodes_no_cost_is_above_four(tmp_path):
    consortium = Consortium(tmp_path)
    attacker = Attacker(consortium, [lambda site: site.with_parts(lambda name, part: 0 * part + 4.1)], times=3)
    attacker.when = lambda head: head.get("step") == "costs"
    run, services = consortium.run(EXACT, standardize="true"), consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services, attacker))
    close(services)
    assert "cost: expected numbers up to 4, got 4.1" in outcome.troubles[0]["reason"]


LENGTHS = {
    "shorter": lambda part: part[:-1],
    "longer": lambda part: np.append(part, 0.0),
    "empty": lambda part: part[:0],
    "doubled": lambda part: np.append(part, part),
    "a number": lambda part: float(part[0]),
}


def of_length(length: str, *, lists: bool) -> Attack:
    def attack(site: Hostile) -> bytes | None:
        chosen = [
            name for name, part in parts_of(site.update).items() if np.ndim(part) and (name == "products") == lists
        ]
        return site.with_parts(lambda name, part: LENGTHS[length](part) if name in chosen else part) if chosen else None

    return attack


@pytest.mark.usefixtures("patient")
def test_a_vector_of_another_length_is_rejected(tmp_path, undisturbed):
    ended = attacked(tmp_path, *(of_length(length, lists=False) for length in LENGTHS), when=is_round)
    assert_harmless(ended, undisturbed())


@pytest.mark.usefixtures("patient")
def test_a_list_of_another_length_is_rejected_at_the_site_that_sent_it(tmp_path, undisturbed):
    ended = attacked(tmp_path, *(of_length(length, lists=True) for length in LENGTHS), learn=LONG, when=is_round)
    assert_harmless(ended, undisturbed(LONG))


def test_a_number_sent_as_a_list_is_rejected(tmp_path, undisturbed):
    def attack(site: Hostile) -> bytes | None:
        parts = parts_of(site.update)
        if not any(isinstance(part, float) for part in parts.values()):
            return None
        return site.with_parts(lambda name, part: np.array([part]) if isinstance(part, float) else part)

    assert_harmless(attacked(tmp_path, attack, when=is_round), undisturbed())


# --- parts, headers, names ----------------------------------------------------------------------------------------


CHANGES: dict[str, Attack] = {
    "a part missing": lambda site: site.with_update(parts=dict(list(parts_of(site.update).items())[1:])),
    "no parts": lambda site: site.with_update(parts={}),
    "one part more": lambda site: site.with_update(parts={**parts_of(site.update), "signals": np.ones(28)}),
    "another round": lambda site: site.with_update(round=site.update.header.round + 1),
    "round 0": lambda site: site.with_update(round=0),
    "another step": lambda site: site.with_update(step="other"),
    "another method": lambda site: site.with_update(method="pooled"),
    "another run inside": lambda site: site.with_update(run="another-run.1"),
    "another run outside": lambda site: site.resealed(run="another-run.1"),
    "no run": lambda site: site.resealed(run=None),
    "another silo inside": lambda site: site.with_update(silo="oslo"),
    "a silo of 1 MB": lambda site: site.with_update(silo="x" * 10**6),
    "signed by another site": lambda site: site.resealed(signer="oslo"),
    "signed by the coordinator": lambda site: site.resealed(signer="coordinator.example"),
    "self-signed": lambda site: rewrite(site.honest, self_signed(HOSTILE), trust=site.consortium.trust),
    "to another request": lambda site: site.resealed(re="0" * 64),
    "to no request": lambda site: site.resealed(re=None),
    "to a list of requests": lambda site: site.resealed(re=[site.reply.head["re"]]),
    "an unknown kind": lambda site: site.resealed(kind="confession"),
    "no kind": lambda site: site.resealed(kind=None),
    "a kind that is a list": lambda site: site.resealed(kind=["answer"]),
    "an unknown refusal": lambda site: site.resealed(kind="refusal", code="tired"),
    "a refusal without a code": lambda site: site.resealed(kind="refusal"),
    "a refusal for many reasons": lambda site: site.resealed(kind="refusal", code=["busy"]),
    "a refusal for half a letter": lambda site: site.resealed(kind="refusal", code="\ud800"),
    "the request itself": lambda site: site.asked,
    "no bytes": lambda site: b"",
    "one byte": lambda site: b"S",
    "half": lambda site: site.honest[: len(site.honest) // 2],
    "all but a byte": lambda site: site.honest[:-1],
    "a byte more": lambda site: site.honest + b"\x00",
    "twice": lambda site: site.honest * 2,
    "10 MB of junk": lambda site: random.Random(0).randbytes(10**7),
    "10 MB of signed junk": lambda site: site.resealed(body=random.Random(0).randbytes(10**7)),
    "an empty body": lambda site: site.resealed(body=b""),
    "half a body": lambda site: site.resealed(body=site.reply.body[:-20]),
    "a task": lambda site: site.resealed(body=open_message(site.asked, site.consortium.trust).body),
    "a head that is a list": lambda site: signed_by(site, b"[]"),
    "a head that is no JSON": lambda site: signed_by(site, b"\xff{"),
    "a head of 1 MB of nesting": lambda site: signed_by(site, b"[" * 900_000),
    "a deep head": lambda site: signed_by(site, b'{"kind":' + b'{"a":' * 150_000),
    "a head larger than any": lambda site: signed_by(site, b" " * 1_000_001),
    "a deep header inside": lambda site: site.resealed(body=with_header(site.reply.body, b"[" * 10**6)),
    "a header inside that is a list": lambda site: site.resealed(body=with_header(site.reply.body, b"[]")),
    "a header inside with long numbers": lambda site: site.resealed(body=with_header(site.reply.body, b"9" * 10**5)),
    "sizes beyond all": lambda site: HEAD.pack(b"SLGE", 1, 65535, 2**32 - 1, 2**32 - 1, 2**64 - 1),
    "another format": lambda site: site.honest[:4] + b"\x63" + site.honest[5:],
}


def signed_by(site: Hostile, head: bytes) -> bytes:
    return seal(head, site.reply.body, site.consortium.signers[HOSTILE])


def with_header(body: bytes, header: bytes) -> bytes:
    """A message with any bytes for its JSON, its sizes right."""
    magic, version, kind, size, n_numbers = MESSAGE_HEAD.unpack_from(body)
    return MESSAGE_HEAD.pack(magic, version, kind, len(header), n_numbers) + header + body[MESSAGE_HEAD.size + size :]


@pytest.mark.usefixtures("patient")
def test_whatever_is_wrong_with_an_answer_it_is_rejected_and_asked_for_again(tmp_path, undisturbed):
    """All of them in one run, each in answer to one and the same request."""
    ended = attacked(tmp_path, *CHANGES.values(), when=is_first)
    assert len(ended.attacker.sent) == len(CHANGES)
    assert_harmless(ended, undisturbed())


def test_parts_that_a_message_only_claims_cost_nothing():
    """A part of which no number is kept takes no bytes, however long it is."""
    header = {"run": "r", "method": "m", "step": "s", "round": 1}
    claimed = {"header": header, "silo": "a", "reported": [], "parts": [[f"p{k}", 10**6, 0] for k in range(200)]}
    message = with_header(encode_update(update_of(Header(**header), "a", {})), json.dumps(claimed).encode())
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode_update(message, n_pairs=10**6)
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()


def test_parts_that_the_step_has_no_room_for_are_not_made():
    """Fewer parts than a message may have, but more numbers than an answer to the step can have."""
    header = {"run": "r", "method": "m", "step": "s", "round": 1}
    claimed = {"header": header, "silo": "a", "reported": [], "parts": [[f"p{k}", 10**6, 0] for k in range(90)]}
    message = with_header(encode_update(update_of(Header(**header), "a", {})), json.dumps(claimed).encode())
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="claims more numbers"):
            decode_update(message, n_pairs=10**6, most=largest_update({"cost": PAIRS}, 10**6))
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


HUGE = 200_000_000


@dataclass
class Flood(Loopback):
    """The hostile site answers each round with 200 MB, properly signed; keeps what the coordinator needed for that."""

    consortium: Consortium = field(kw_only=True)
    sent: int = 0
    needed: list[int] = field(default_factory=list)  # bytes

    def ask(self, site: str, data: bytes, *limits: float) -> bytes | Silence:
        honest = super().ask(site, data, *limits)
        if site != HOSTILE or isinstance(honest, Silence) or b'"kind":"round"' not in data[:1000]:
            return honest
        if self.sent:
            self.needed.append(tracemalloc.get_traced_memory()[1] - self.sent)
        reply = Hostile(self.consortium, data, honest, []).resealed(body=bytes(HUGE))
        tracemalloc.reset_peak()
        self.sent = tracemalloc.get_traced_memory()[0]
        return reply


def test_an_answer_of_200_mb_to_a_small_step_is_not_read_and_the_site_is_named(tmp_path):
    consortium = Consortium(tmp_path)
    run, services = consortium.run(EXACT), consortium.services()
    flood = Flood(services, consortium=consortium)
    tracemalloc.start()
    try:
        outcome = consortium.run_attempt(run, flood)
    finally:
        tracemalloc.stop()
        close(services)
    (trouble,) = outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "rejected")
    assert re.search(r"sent 3 answers .*: message: expected at most 10\d{5} bytes, got more", trouble["reason"])
    assert len(flood.needed) == 2
    assert max(flood.needed) < HUGE / 20
    kept = [path.stat().st_size for path in run.quarantine.iterdir()]
    assert kept == [quarantine.LARGEST_KEPT] * 3


@pytest.mark.usefixtures("patient")
def test_a_bad_answer_is_rejected_in_every_round(tmp_path, undisturbed):
    names = ["a part missing", "another silo inside", "an unknown kind", "no bytes", "a task", "another step"]
    ended = attacked(tmp_path, *(CHANGES[name] for name in names), when=is_round)
    assert len(ended.attacker.sent) > 6 * len(names)
    assert_harmless(ended, undisturbed())


@pytest.mark.usefixtures("patient")
def test_a_bad_graph_is_rejected_at_the_end(tmp_path, undisturbed):
    names = ["no parts", "one part more", "another run inside", "another silo inside", "an empty body", "a task"]
    attacks = [*(CHANGES[name] for name in names), *map(with_value, (np.nan, -1.0, 1e200))]
    assert_harmless(attacked(tmp_path, *attacks, when=lambda head: head["kind"] == "finish"), undisturbed())


def test_a_greeting_that_is_answered_badly_is_said_again(tmp_path, undisturbed):
    ended = attacked(tmp_path, lambda site: site.honest[:-1], when=lambda head: head["kind"] == "hello", times=2)
    assert_harmless(ended, undisturbed())


def test_an_earlier_answer_does_not_pass_for_a_later_one(tmp_path, undisturbed):
    ended = attacked(tmp_path, lambda site: site.before[-1], when=is_round, times=2)
    assert_harmless(ended, undisturbed())


def test_an_answer_given_in_another_run_does_not_pass_in_this_one(tmp_path):
    consortium = Consortium(tmp_path)
    first, second, old = consortium.run(EXACT), consortium.run(EXACT), []

    def keep(site, data, service):
        reply = service(data)
        if site == HOSTILE:
            old.append(reply)
        return reply

    expected = digests(consortium.finish(first, Loopback(consortium.services(), keep)))
    replays = iter(old)
    attacker = Attacker(consortium, [lambda site: next(replays)])
    assert digests(consortium.finish(second, Loopback(consortium.services(), attacker))) == expected
    assert len(attacker.sent) == len(old)


# --- what a site tells of itself ----------------------------------------------------------------------------------


def telling(**reported: float) -> Attack:
    return lambda site: site.with_update(reported=reported)


@pytest.mark.usefixtures("patient")
def test_what_a_site_cannot_tell_of_itself_is_rejected(tmp_path, undisturbed):
    reported = [
        {"samples": -1.0},
        {"edges": -0.5},
        {"signals": 1.0},
        {"contribution": -np.inf},
        {"Edges": 1.0},
        {"": 1.0},
    ]
    ended = attacked(tmp_path, *(telling(**one) for one in reported), when=is_learning)
    assert_harmless(ended, undisturbed())


@pytest.mark.parametrize(
    "reported",
    [
        {"samples": 5.0},
        {"edges": np.nan, "contribution": np.nan, "samples": np.inf, "distance": np.inf},
        {"edges": np.inf, "contribution": 0.0, "samples": 1e300, "distance": 1e300},
        {"edges": 1e308, "contribution": 1e308},
    ],
    ids=str,
)
@pytest.mark.parametrize("kept", [pytest.param(False, marks=pytest.mark.slow), True], ids=["graph sent", "graph kept"])
def test_what_a_site_tells_of_itself_wrongly_stops_no_run_and_changes_no_graph(tmp_path, undisturbed, reported, kept):
    def attack(site: Hostile) -> bytes | None:
        if site.head["kind"] == "finish":
            return site.resealed(kind="refusal", code="kept", body=b"") if kept else None
        return site.with_update(reported=reported)

    ended = attacked(tmp_path, attack, when=lambda head: is_learning(head) or head["kind"] == "finish")
    assert ended.outcome.ended == "done", ended.outcome
    found = {name: digest for name, digest in ended.results.items() if name != "run.json"}
    assert found.items() <= undisturbed().items()
    record = (ended.run.folder / "results" / "run.json").read_text()
    json.loads(record, parse_constant=pytest.fail)  # which knows no Infinity


# --- a thousand mutations -----------------------------------------------------------------------------------------


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Some bits flipped, some bytes cut, doubled, put elsewhere or replaced: never the same bytes."""
    while True:
        made = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            at, to = sorted(rng.randrange(len(data)) for _ in range(2))
            match rng.randrange(6):
                case 0 | 1:
                    made[at % max(len(made), 1) : at % max(len(made), 1) + 1] = bytes([rng.randrange(256)])
                case 2:
                    del made[at : min(to, at + 50)]
                case 3:
                    made[at:at] = made[at : min(to, at + 50)]
                case 4:
                    made[at:at] = rng.randbytes(rng.randrange(1, 9))
                case 5:
                    del made[max(at, 1) :]
        if made and bytes(made) != data:
            return bytes(made)


@pytest.mark.usefixtures("patient")
def test_a_thousand_mutated_answers_are_all_rejected(tmp_path, undisturbed):
    """The signature notices whatever was changed on the way."""
    rng = random.Random(20240229)
    ended = attacked(tmp_path, lambda site: mutated(site.honest, rng), times=130)
    assert ended.outcome.ended == "done"
    assert len(ended.attacker.sent) >= 1000
    assert ended.results == undisturbed()
    rejected = [event for event in ended.events if event.kind == "rejected"]
    assert len(rejected) == len(ended.attacker.sent)
    assert all(event.reason for event in rejected)
    kept = list((ended.run.folder / "quarantine").iterdir())
    assert len(kept) == len(ended.rejected) == quarantine.MOST_KEPT


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_mutations_that_are_signed_are_rejected_unless_they_are_answers_too(tmp_path, seed):
    """A hostile site may send any numbers that an honest one could: these are added, and cannot be told from others.

    So each mutated message is judged a second time here, by itself: only those are accepted that have the form of the
    answer (and, what is not judged here, possible sizes). Whatever comes of them, the coordinator does not fall over.
    """
    rng, passable = random.Random(seed), []

    def attack(site: Hostile) -> bytes:
        message = mutated(site.reply.body, rng)
        passable.append(is_passable(message, site.update))
        return site.resealed(body=message)

    ended = attacked(tmp_path, attack, when=is_round, times=30)
    rejected = [event for event in ended.events if event.kind == "rejected"]
    assert len(ended.attacker.sent) - sum(passable) <= len(rejected)
    assert len(rejected) > sum(passable)
    assert "see the log" not in ended.outcome.message


def is_passable(message: bytes, honest: Update) -> bool:
    """Whether an honest site could have sent this: the same header and form, finite numbers, signs as in `honest`."""
    try:
        update = decode_update(message, n_pairs=28)
    except ProtocolError:
        return False
    parts, expected = parts_of(update), parts_of(honest)
    if (update.header, update.silo, parts.keys()) != (honest.header, honest.silo, expected.keys()):
        return False
    if update.reported.keys() - {"samples", "scale", "edges", "distance", "contribution"}:
        return False
    if any(number < 0 for number in update.reported.values()):
        return False
    for name, part in parts.items():
        largest = 1e300 if isinstance(part, float) else 1e150
        signed = name in {"log_theta", "force", "primal", "target", "dual", "slack", "inner", "value"}
        if np.shape(part) != np.shape(expected[name]) or not np.all(np.abs(part) <= largest):
            return False
        if not signed and np.any(np.asarray(part) < 0) and not np.any(np.asarray(expected[name]) < 0):
            return False
    return True


# --- sites that never answer properly -----------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["another silo inside", "no bytes"])
def test_a_site_that_sends_only_bad_answers_ends_the_attempt_and_is_named(tmp_path, change):
    ended = attacked(tmp_path, CHANGES[change], when=is_first, times=FOR_EVER)
    assert ended.outcome.ended == "trouble"
    (trouble,) = ended.outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "rejected")
    assert HOSTILE in ended.outcome.message
    assert len(ended.attacker.sent) == site_request.MOST_REJECTED == len(ended.rejected)
    assert ended.run.outcome() == ended.outcome
    assert not (ended.run.folder / "results").exists()


FINAL = sorted(REASONS.keys() - site_request.PASSING)


@pytest.mark.parametrize("code", [*FINAL[:3], *(pytest.param(code, marks=pytest.mark.slow) for code in FINAL[3:])])
def test_a_refusal_ends_the_attempt_with_its_reason(tmp_path, code):
    ended = attacked(
        tmp_path, lambda site: site.resealed(kind="refusal", code=code, body=b""), when=is_first, times=FOR_EVER
    )
    assert ended.outcome.ended == "trouble"
    assert ended.outcome.troubles == ({"site": HOSTILE, "kind": "refused", "reason": REASONS[code], "code": code},)
    assert len(ended.attacker.sent) == 1


@pytest.mark.parametrize("code", ["busy", "unknown-run", "unapproved"])
def test_a_refusal_that_may_pass_is_waited_for(tmp_path, undisturbed, monkeypatch, code):
    monkeypatch.setattr(site_request, "APPROVAL_PAUSE", 0.01)
    monkeypatch.setattr(site_request, "REACH_PAUSE", 0.001)
    ended = attacked(tmp_path, lambda site: site.resealed(kind="refusal", code=code, body=b""), when=is_round, times=2)
    assert ended.outcome.ended == "done"
    assert ended.results == undisturbed()
    assert not ended.rejected


def test_a_site_that_knows_no_run_however_often_it_is_greeted_ends_the_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(site_request, "REACH_PAUSE", 0.01)
    ended = attacked(tmp_path, lambda site: site.resealed(kind="refusal", code="unknown-run", body=b""), times=FOR_EVER)
    assert ended.outcome.ended == "trouble", ended.outcome
    assert [trouble["site"] for trouble in ended.outcome.troubles] == [HOSTILE]
    assert len(ended.attacker.sent) < 10


@pytest.mark.parametrize("code", ["busy", "unknown-run"])
def test_a_site_that_puts_off_for_ever_is_not_asked_without_a_pause(tmp_path, code):
    attack = lambda site: site.resealed(kind="refusal", code=code, body=b"")  # noqa: E731
    policy = 'timeout = 0.7\non_missing = "stop"'
    ended = attacked(tmp_path, attack, when=is_first, times=FOR_EVER, policy=policy)
    assert ended.outcome.troubles[0]["kind"] == "missing"
    assert len(ended.attacker.sent) < 10


# --- silence ------------------------------------------------------------------------------------------------------


def silenced(
    folder: Path, silence: Silence, policy: str = "", *, until: float = np.inf, stopped=lambda: False
) -> Ended:
    """A run in which one site falls silent as learning begins, for some seconds or for ever."""
    consortium = Consortium(folder)
    since: list[float] = []

    def tamper(site, data, service):
        if site != HOSTILE or not is_learning(dict(open_message(data, consortium.trust).head)):
            return service(data)
        since.append(time.monotonic())
        if time.monotonic() - since[0] < until:
            time.sleep(0.01)
            return silence
        return service(data)

    run, services = consortium.run(EXACT, policy), consortium.services()
    outcome = run_attempt(
        run, Loopback(services, tamper), attempt="a", signer=consortium.server, trust=consortium.trust, stopped=stopped
    )
    close(services)
    return Ended(run, outcome, Attacker(consortium, []), consortium)


@pytest.mark.usefixtures("hurried")
def test_a_site_out_of_reach_is_lost(tmp_path):
    ended = silenced(tmp_path, Silence.UNREACHABLE)
    assert ended.outcome.ended == "trouble"
    (trouble,) = ended.outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "lost")
    assert [event.site for event in ended.events if event.kind == "lost"] == [HOSTILE]


def test_a_site_out_of_reach_for_a_moment_is_asked_again(tmp_path, undisturbed):
    ended = silenced(tmp_path, Silence.UNREACHABLE, until=0.2)
    assert (ended.outcome.ended, ended.results) == ("done", undisturbed())


@pytest.mark.usefixtures("hurried")
def test_a_site_that_took_long_and_is_then_out_of_reach_for_a_moment_is_not_lost(tmp_path, undisturbed):
    """It was in reach just now: to be late is not to be gone."""
    consortium, asked = Consortium(tmp_path), []

    def tamper(site, data, service):
        if site != HOSTILE or not is_first(dict(open_message(data, consortium.trust).head)):
            return service(data)
        asked.append(data)
        if len(asked) == 1:
            time.sleep(site_request.GONE_AFTER / 10 + 0.1)
            return Silence.LATE
        return Silence.UNREACHABLE if len(asked) == 2 else service(data)

    run = consortium.run(EXACT)
    assert digests(consortium.finish(run, Loopback(consortium.services(), tamper))) == undisturbed()


@pytest.mark.parametrize("choice", ["continue", "stop"])
def test_a_late_site_is_missing_once_the_studys_patience_is_over(tmp_path, choice):
    ended = silenced(tmp_path, Silence.LATE, f'timeout = 0.2\non_missing = "{choice}"')
    assert ended.outcome.ended == "trouble"
    (trouble,) = ended.outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "missing")
    assert "0.2 s" in trouble["reason"]


def test_a_study_that_waits_for_a_late_site_says_so_once_and_ends_as_if_it_had_been_in_time(tmp_path, undisturbed):
    ended = silenced(tmp_path, Silence.LATE, 'timeout = 0.1\non_missing = "wait"', until=0.5)
    assert ended.outcome.ended == "done"
    noted = [event for event in ended.events if event.kind == "missing"]
    assert [event.site for event in noted] == [HOSTILE]
    results = ended.results
    assert {name: results[name] for name in results if name != "run.json"}.items() <= undisturbed().items()


def test_a_run_told_to_stop_stops_and_goes_on_later(tmp_path, undisturbed):
    stop = threading.Event()
    threading.Timer(0.4, stop.set).start()
    ended = silenced(tmp_path, Silence.LATE, stopped=stop.is_set)
    assert ended.outcome.ended == "stopped"
    assert digests(ended.consortium.finish(ended.run)) == undisturbed()


def test_after_a_site_has_sent_nothing_but_junk_the_run_goes_on_where_it_was(tmp_path, undisturbed):
    ended = attacked(tmp_path, lambda site: b"junk", when=is_last, times=FOR_EVER)
    assert ended.outcome.ended == "trouble"
    transport = Loopback(ended.consortium.services())
    assert digests(ended.consortium.finish(ended.run, transport)) == undisturbed()
    heads = [open_message(data, ended.consortium.trust).head for _, data in transport.asked]
    assert {head.get("step") for head in heads} <= {None, "close"}  # no earlier round is asked for again


def test_troubles_of_several_sites_are_told_together(tmp_path):
    consortium = Consortium(tmp_path)

    def tamper(site, data, service):
        learning = is_learning(dict(open_message(data, consortium.trust).head))
        return Silence.LATE if learning and site != "kyoto" else service(data)

    run = consortium.run(EXACT, 'timeout = 0.2\non_missing = "stop"')
    outcome = consortium.run_attempt(run, Loopback(consortium.services(), tamper))
    assert {trouble["site"] for trouble in outcome.troubles} == {"lima", "oslo"}
    states = {site.name: site.state for site in History.open_read(run.history).sites()}
    assert states == {"kyoto": "answered", "lima": "missing", "oslo": "missing"}


def test_a_study_that_cannot_be_learned_ends_the_attempt_with_the_reason(tmp_path):
    """Its pairs name a node that is none: no site is asked, and nothing is raised."""
    consortium = Consortium(tmp_path)
    run = consortium.run(EXACT, forbid='[["node 0", "nowhere"]]')
    outcome = consortium.run_attempt(run, Loopback(consortium.services()))
    assert (outcome.ended, "nowhere" in outcome.message) == ("failed", True)
    assert run.outcome() == outcome
