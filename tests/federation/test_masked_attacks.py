"""A coordinator that tries things on masked sums, and sites that do: noise, refusals, and the culprit's name."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from silograph.errors import ProtocolError
from silograph.federation.coordinator.run import CoordinatorRun, new_run
from silograph.federation.envelope import SignedMessage, VerifiedMessage, open_message
from silograph.federation.identity import Signer, public_key_fingerprint
from silograph.federation.keys import KeyStatement, Terms, join_statements, sign_statement
from silograph.federation.site.audit import entries
from silograph.federation.site.service import SiteService
from silograph.federation.study_file import parse_study
from silograph.graph.pairs import Pairs
from silograph.protocol.checks import check_masked, check_opened
from silograph.protocol.codec import decode_answer, decode_subtotal, encode_subtotal, encode_task
from silograph.protocol.fixed import FRACTION_BITS, subtract_limbs, whole_numbers, zeros
from silograph.protocol.messages import COSTS, Header, Task
from silograph.protocol.sums import Subtotal, add_answers
from silograph.protocol.units import LARGEST_COST, Units
from testing.consortium import NODES, SITES, Consortium, Loopback, close, rewrite

ONESHOT = 'method = "oneshot"\ndegree = 3'
FIELDS, PAIRS = {"cost": COSTS}, Pairs.all(len(NODES))


class Hostile:
    """A coordinator that says to each site what it likes; it holds its own key and the root's."""

    def __init__(self, folder: Path) -> None:
        self.consortium = Consortium(folder)
        self.run = self.consortium.masked_run(ONESHOT)
        self.services: dict[str, SiteService] = self.consortium.services()
        for site in SITES:
            assert self.hello(site).head["kind"] == "answer"

    def ask(self, site: str, kind: str, body: bytes = b"", **head: object) -> VerifiedMessage:
        message = SignedMessage({"kind": kind, "run": self.run.run_id, **head}, body, self.consortium.server)
        return open_message(self.services[site].reply(message.to(site)[0]), self.consortium.trust)

    def hello(self, site: str) -> VerifiedMessage:
        about = {"study": self.run.study().text.decode(), "nodes": NODES, "silos": SITES}
        return self.ask(site, "hello", json.dumps(about).encode())

    def restart(self, site: str) -> None:
        self.services[site].close()
        self.services[site] = self.consortium.service(site)
        assert self.hello(site).head["kind"] == "answer"

    def key(self, site: str) -> bytes:
        return self.ask(site, "key").body

    def task(self) -> Task:
        return Task(header=Header(run=self.run.run_id, method="setup", step="costs", round=1), parts={})

    def sum_of(self, site: str, n_silos: int = 3) -> VerifiedMessage:
        place = {"stage": "setup", "step": "costs", "round": 1, "n_silos": n_silos, "scalars": {}}
        return self.ask(site, "round", encode_task(self.task()), **place)

    def exchange(self) -> list[bytes]:
        statements = [self.key(site) for site in SITES]
        for site in SITES:
            assert self.ask(site, "peers", join_statements(statements)).head["kind"] == "answer"
        return statements

    def code(self, reply: VerifiedMessage) -> object:
        return reply.head.get("code")

    def detail(self, site: str) -> str:
        return str(list(entries(self.consortium.folder / site / "audit.jsonl"))[-1]["detail"])

    def opens(self, answers: list[bytes]) -> bool:
        """Whether what the sites sent adds up to a sum that can be."""
        total = add_answers([decode_subtotal(one) for one in answers], FIELDS, Units())
        try:
            check_opened(total, FIELDS, pairs=PAIRS, units=Units(), noise=0.0)
        except ProtocolError:
            return False
        return True


@pytest.fixture
def hostile(tmp_path):
    made = Hostile(tmp_path)
    yield made
    close(made.services)


# --- what different sites are told ------------------------------------------------------------------------------------


def test_sites_that_are_told_the_same_open_the_sum(hostile):
    hostile.exchange()
    assert hostile.opens([hostile.sum_of(site).body for site in SITES])


def test_sites_with_different_keys_of_one_of_them_yield_noise(hostile):
    """Oslo is started anew, so that it signs two keys for one run; kyoto gets the first, the others the second."""
    kyoto, lima, first = (hostile.key(site) for site in SITES)
    hostile.restart("oslo")
    second = hostile.key("oslo")
    assert first != second
    for site, own in (("kyoto", first), ("lima", second), ("oslo", second)):
        assert hostile.ask(site, "peers", join_statements([kyoto, lima, own])).head["kind"] == "answer"
    assert not hostile.opens([hostile.sum_of(site).body for site in SITES])


def test_sites_that_are_asked_different_tasks_yield_noise(hostile):
    hostile.exchange()
    assert not hostile.opens([hostile.sum_of(site, 4 if site == "lima" else 3).body for site in SITES])


def test_the_sum_over_all_but_one_is_noise(hostile):
    hostile.exchange()
    answers = [hostile.sum_of(site).body for site in SITES]
    for left in range(3):
        assert not hostile.opens([answer for k, answer in enumerate(answers) if k != left])


def test_answers_of_two_generations_do_not_fit_together(hostile):
    hostile.exchange()
    first = [hostile.sum_of(site).body for site in SITES]
    hostile.run = hostile.run.begin_anew()
    for site in SITES:
        hostile.hello(site)
    hostile.exchange()
    second = [hostile.sum_of(site).body for site in SITES]
    assert hostile.opens(second)
    header = decode_subtotal(first[0]).header
    mixed = [first[0]] + [encode_subtotal(replaced(decode_subtotal(one), header)) for one in second[1:]]
    assert not hostile.opens(mixed)


def replaced(subtotal: Subtotal, header: Header) -> Subtotal:
    return Subtotal(header=header, source=subtotal.source, n_silos=1, parts=subtotal.parts, reported={})


@pytest.mark.parametrize("silos", [SITES[1:], SITES[::-1], (*SITES, "rome")], ids=["fewer", "another order", "more"])
def test_a_site_takes_part_with_just_the_sites_of_the_study(hostile, silos):
    hostile.restart("oslo")
    study = {"study": hostile.run.study().text.decode(), "nodes": NODES, "silos": silos}
    reply = hostile.ask("oslo", "hello", json.dumps(study).encode())
    assert hostile.code(reply) == "sites"


# --- keys -------------------------------------------------------------------------------------------------------------


def forged_by(signer: Signer, hostile: Hostile, site: str) -> bytes:
    """A key of the coordinator's own in a site's name."""
    terms = Terms.of(hostile.run.study(), hostile.run.run_id, SITES, NODES, PAIRS.size)
    own = os.urandom(32)
    return sign_statement(KeyStatement(site=site, key=own, least=2), terms, signer)


def test_a_second_certificate_for_a_known_name_is_refused_because_of_the_pin(hostile):
    """The coordinator sits between oslo and the others, with a certificate for 'oslo' that it signed itself."""
    second = hostile.consortium.authority.new_signer("oslo")
    statements = [hostile.key(site) for site in SITES]
    fake = [*statements[:2], forged_by(second, hostile, "oslo")]
    assert hostile.code(hostile.ask("lima", "peers", join_statements(fake))) == "pins"
    assert hostile.detail("lima").startswith("oslo, key: was signed by another key")


def test_a_study_that_names_the_second_certificates_key_is_refused_before_any_key_is_sent(hostile):
    second = hostile.consortium.authority.new_signer("oslo")
    text = hostile.run.study().text.decode()
    genuine, fake = (public_key_fingerprint(one.certificate) for one in (hostile.consortium.signers["oslo"], second))
    study = parse_study(text.replace(genuine, fake).encode(), source="study")
    hostile.run = new_run(hostile.consortium.folder / "runs", study, NODES, SITES)
    assert {site: hostile.code(hostile.hello(site)) for site in SITES} == dict.fromkeys(SITES, "pins")
    assert hostile.detail("lima").startswith("oslo: ")


def test_a_pin_that_changes_between_greeting_and_keys_counts(hostile):
    statements = [hostile.key(site) for site in SITES]
    hostile.consortium.pin("lima", oslo="0" * 64)
    assert hostile.code(hostile.ask("lima", "peers", join_statements(statements))) == "pins"


def test_the_same_key_is_told_as_often_as_it_is_asked_for(hostile):
    assert hostile.key("oslo") == hostile.key("oslo")


def test_other_keys_after_the_first_are_a_conflict(hostile):
    statements = hostile.exchange()
    hostile.restart("lima")
    other = [statements[0], hostile.key("lima"), statements[2]]
    assert hostile.code(hostile.ask("oslo", "peers", join_statements(other))) == "conflict"
    assert hostile.sum_of("oslo").head["kind"] == "answer"  # by the keys that it has


def test_an_open_study_has_no_keys(tmp_path):
    consortium = Consortium(tmp_path)
    run, services = consortium.run(ONESHOT), consortium.services()
    asked = []

    def tamper(site, data, service):
        reply = service(data)
        if open_message(data, consortium.trust).head["kind"] == "round":
            key = rewrite(data, consortium.server, trust=consortium.trust, kind="key", body=b"")
            asked.append(open_message(service(key), consortium.trust).head.get("code"))
        return reply

    consortium.run_attempt(run, Loopback(services, tamper))
    close(services)
    assert set(asked) <= {"malformed", "unknown-run"}
    assert "malformed" in asked


# --- no answer without masks, and no mask twice -----------------------------------------------------------------------


@pytest.mark.parametrize("keys", ["none", "its own alone"])
def test_without_everybodys_keys_a_site_sends_nothing(hostile, keys):
    if keys != "none":
        hostile.key("oslo")
    assert hostile.code(hostile.sum_of("oslo")) == "keys"
    assert not (hostile.consortium.folder / "oslo" / "answered").exists()


def test_after_a_restart_a_site_sends_what_it_sent_before_and_masks_nothing_anew(hostile):
    statements = hostile.exchange()
    before = hostile.sum_of("oslo").body
    hostile.restart("oslo")
    assert hostile.sum_of("oslo").body == before
    assert hostile.code(hostile.sum_of("oslo", 4)) == "conflict"
    hostile.restart("oslo")
    assert hostile.code(hostile.ask("oslo", "key")) == "keys"
    hostile.hello("oslo")
    assert hostile.code(hostile.ask("oslo", "peers", join_statements(statements))) == "keys"
    hostile.hello("oslo")
    assert hostile.sum_of("oslo").body == before


def test_without_a_restart_a_second_request_gets_the_same_bytes_and_another_one_none(hostile):
    hostile.exchange()
    before = hostile.sum_of("oslo").body
    assert hostile.sum_of("oslo").body == before
    assert hostile.code(hostile.sum_of("oslo", 4)) == "conflict"


def test_what_leaves_is_on_disk_before(hostile):
    hostile.exchange()
    body = hostile.sum_of("oslo").body
    sent = decode_subtotal(body).parts["cost"].tobytes()
    state = hostile.consortium.folder / "oslo" / "state" / hostile.run.run_id
    assert any(sent in path.read_bytes() for path in state.rglob("*.segment"))


def test_no_key_is_on_disk(hostile):
    hostile.exchange()
    hostile.sum_of("oslo")
    masking = hostile.services["oslo"]._site_runs[hostile.run.run_id].masking
    secrets = [*masking._masker.secrets.values(), masking._private.private_bytes_raw()]
    assert len(secrets) == 3
    kept = [path.read_bytes() for path in (hostile.consortium.folder / "oslo").rglob("*") if path.is_file()]
    assert not any(secret in data or secret.hex().encode() in data for data in kept for secret in secrets)


# --- sites that lie, and messages that are damaged --------------------------------------------------------------------


def outcome_with(consortium: Consortium, run: CoordinatorRun, kind: str, change: Callable[[bytes], bytes]):
    """How an attempt ends in which lima answers one kind of request with something else, properly signed."""
    services = consortium.services()

    def tamper(site, data, service):
        reply = service(data)
        head = open_message(data, consortium.trust).head
        if site != "lima" or head["kind"] != kind or head.get("stage") == "learn":
            return reply
        signer = consortium.signers["lima"]
        body = change(open_message(reply, consortium.trust).body)
        return rewrite(reply, signer, trust=consortium.trust, to="coordinator", body=body)

    outcome = consortium.run_attempt(run, Loopback(services, tamper))
    close(services)
    return outcome


def test_a_site_that_sends_a_bad_key_is_named(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.masked_run(ONESHOT)
    outcome = outcome_with(consortium, run, "key", lambda body: body[:-1] + bytes([body[-1] ^ 1]))
    assert [(trouble["site"], trouble["kind"]) for trouble in outcome.troubles] == [("lima", "rejected")]
    assert "lima, key: message: the signature is not that of 'lima'" in outcome.message


def test_a_site_whose_masks_do_not_cancel_ends_the_run_and_nobody_can_say_which(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.masked_run(ONESHOT)

    def unmasked(body: bytes) -> bytes:
        answer = decode_subtotal(body)
        return encode_subtotal(
            Subtotal(header=answer.header, source="lima", n_silos=1, parts={"cost": zeros(28)}, reported={})
        )

    outcome = outcome_with(consortium, run, "round", unmasked)
    assert outcome.ended == "failed"
    assert "masks do not cancel" in outcome.message
    assert "nobody can say which" in outcome.message
    assert not any(site in outcome.message for site in SITES)
    assert not run.results.exists()


def test_a_site_that_sends_numbers_beside_the_sum_or_unmasked_ones_is_named(tmp_path):
    for number, change in enumerate((with_samples, with_one_pair_less)):
        consortium = Consortium(tmp_path / str(number))
        outcome = outcome_with(consortium, consortium.masked_run(ONESHOT), "round", change)
        assert [trouble["site"] for trouble in outcome.troubles] == ["lima"]


def with_samples(body: bytes) -> bytes:
    answer = decode_subtotal(body)
    told = {"lima": {"samples": 40.0}}
    return encode_subtotal(Subtotal(header=answer.header, source="lima", n_silos=1, parts=answer.parts, reported=told))


def with_one_pair_less(body: bytes) -> bytes:
    answer = decode_subtotal(body)
    parts = {"cost": np.asarray(answer.parts["cost"])[:-1]}
    return encode_subtotal(Subtotal(header=answer.header, source="lima", n_silos=1, parts=parts, reported={}))


def test_of_1000_damaged_sealed_answers_none_is_believed(hostile):
    hostile.exchange()
    place = {"stage": "setup", "step": "costs", "round": 1, "n_silos": 3, "scalars": {}}
    head = {"kind": "round", "run": hostile.run.run_id, **place}
    message = SignedMessage(head, encode_task(hostile.task()), hostile.consortium.server)
    reply, rng = hostile.services["oslo"].reply(message.to("oslo")[0]), random.Random(1)
    assert open_message(reply, hostile.consortium.trust).head["kind"] == "answer"
    tried = 0
    while tried < 1000:
        at, length = rng.randrange(len(reply)), rng.randint(1, 30)
        insert = rng.choice([b"", rng.randbytes(length), bytes(length)])
        damaged = reply[:at] + insert + reply[at + rng.choice([0, length]) :]
        if damaged == reply:
            continue
        tried += 1
        with pytest.raises(ProtocolError):
            open_message(damaged, hostile.consortium.trust)


def test_of_1000_answers_that_a_site_damaged_itself_each_is_refused_or_noise_or_a_term_that_can_be(hostile):
    """Masks take away the checks of single sites: one that lies within what costs can be is not noticed."""
    hostile.exchange()
    answers = [hostile.sum_of(site).body for site in SITES]
    rng, refused, noise, small = random.Random(2), 0, 0, 0
    for _ in range(1000):
        at, length = rng.randrange(len(answers[2])), rng.randint(1, 9)
        damaged = answers[2][:at] + rng.randbytes(length) + answers[2][at + length :]
        try:
            answer = decode_answer(damaged, n_pairs=28)
            assert isinstance(answer, Subtotal)
            check_masked(answer, hostile.task(), FIELDS, pairs=PAIRS)
            if (answer.source, answer.n_silos) != ("oslo", 1):
                raise ProtocolError("of another site")
        except ProtocolError:
            refused += 1
            continue
        if hostile.opens([*answers[:2], damaged]):
            difference = np.copy(answer.parts["cost"])
            subtract_limbs(difference, decode_subtotal(answers[2]).parts["cost"])
            assert max(abs(whole) for whole in whole_numbers(difference)) <= 3 * LARGEST_COST * 2**FRACTION_BITS
            small += 1
        else:
            noise += 1
    assert min(refused, noise) > 50
    assert refused + noise + small == 1000
