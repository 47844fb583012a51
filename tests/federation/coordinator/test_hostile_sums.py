"""A hostile site with several silos may claim any number of them and any sum: it is named, and nothing is added."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from silograph.federation.coordinator import request as site_request
from silograph.federation.coordinator.run import Outcome, open_run
from silograph.federation.envelope import open_message
from silograph.protocol.codec import decode_subtotal, encode_subtotal, encode_update
from silograph.protocol.fixed import limbs_of
from silograph.protocol.messages import Header, update_of
from silograph.protocol.sums import Subtotal
from testing.conformance import EXACT, digests
from testing.consortium import Consortium, Loopback, close, rewrite

HOSTILE, PATIENTS = "lima", {"lima": 6, "oslo": 5}
Lie = Callable[[bytes, dict], bytes | None]  # the honest body, the request's head → another body


def attempt(consortium: Consortium, lie: Lie, run=None) -> Outcome:
    """A run whose hostile site answers by a lie wherever it has one."""

    def tamper(site, data, service):
        reply = service(data)
        found = open_message(reply, consortium.trust)
        if site != HOSTILE or found.head["kind"] != "answer":
            return reply
        body = lie(found.body, dict(open_message(data, consortium.trust).head))
        if body is None:
            return reply
        return rewrite(reply, consortium.authority.signer(HOSTILE), trust=consortium.trust, to="coordinator", body=body)

    services = consortium.services()
    outcome = consortium.run_attempt(run or consortium.run(EXACT), Loopback(services, tamper))
    close(services)
    return outcome


def assert_named(outcome: Outcome, said: str) -> None:
    assert outcome.ended == "trouble", outcome
    (trouble,) = outcome.troubles
    assert (trouble["site"], trouble["kind"]) == (HOSTILE, "rejected")
    assert said in trouble["reason"]


def greeting(claim: object) -> Lie:
    return lambda body, head: json.dumps({"n_silos": claim}).encode() if head["kind"] == "hello" else None


@pytest.mark.parametrize("claim", [10**9, 2**15 + 1, 0, -1, 1.5, "6", True, None, [6], 10**400])
def test_a_number_of_silos_that_cannot_be_is_refused(tmp_path, claim):
    assert_named(attempt(Consortium(tmp_path, patients=PATIENTS), greeting(claim)), "expected 1 to 32768 silos, got")


@pytest.mark.parametrize("body", [b"", b"[]", b"6", b"{}", b"\xff", b"[" * 5000])
def test_a_greeting_without_a_number_is_refused(tmp_path, body):
    lie = lambda honest, head: body if head["kind"] == "hello" else None  # noqa: E731
    assert_named(attempt(Consortium(tmp_path, patients=PATIENTS), lie), "how many silos the site has")


def test_more_silos_than_a_sum_has_room_for_are_blamed_on_the_site_with_the_most(tmp_path):
    outcome = attempt(Consortium(tmp_path, patients=PATIENTS), greeting(2**15))
    assert_named(outcome, "says that it has 32768 silos; all together 32774, of 32768 at most")


@pytest.mark.parametrize("claim", [5, 7, 60])
def test_a_sum_over_another_number_than_was_said_is_refused(tmp_path, claim):
    outcome = attempt(Consortium(tmp_path, patients=PATIENTS), greeting(claim))
    assert_named(outcome, f"is a sum over 6 silos; lima has {claim}")


def in_rounds(change: Callable[[Subtotal], Subtotal], step: str | None = None) -> Lie:
    def lie(body: bytes, head: dict) -> bytes | None:
        if head["kind"] != "round" or step not in (None, head["step"]):
            return None
        return encode_subtotal(change(decode_subtotal(body)))

    return lie


def test_a_number_that_changes_during_the_run_is_refused(tmp_path):
    def change(subtotal: Subtotal) -> Subtotal:
        return replace(subtotal, n_silos=60 if subtotal.header.method == "exact" else 6)

    outcome = attempt(Consortium(tmp_path, patients=PATIENTS), in_rounds(change))
    assert_named(outcome, "is a sum over 60 silos; lima has 6")


def test_one_silos_numbers_in_place_of_the_sum_are_refused(tmp_path):
    def lie(body: bytes, head: dict) -> bytes | None:
        if head["kind"] != "round":
            return None
        header = decode_subtotal(body).header
        return encode_update(update_of(header, HOSTILE, {"cost": np.ones(28)}))

    assert_named(attempt(Consortium(tmp_path, patients=PATIENTS), lie), "is a sum over 1 silos; lima has 6")


def test_a_sum_in_anothers_name_is_refused(tmp_path):
    lie = in_rounds(lambda subtotal: replace(subtotal, source="oslo", reported={}))
    assert_named(attempt(Consortium(tmp_path, patients=PATIENTS), lie), "speaks for 'oslo', but 'lima' was asked")


def test_a_sum_too_large_for_its_silos_is_refused_by_its_field(tmp_path):
    def change(subtotal: Subtotal) -> Subtotal:
        return replace(subtotal, parts={"cost": np.concatenate([limbs_of(2**180)] * 28)})

    outcome = attempt(Consortium(tmp_path, patients=PATIENTS), in_rounds(change, "costs"))
    assert_named(outcome, "cost: expected numbers up to")


def test_a_pair_that_is_there_by_half_is_refused_though_two_halves_make_one(tmp_path):
    """A count between 0 and 1 would end the run for all; two sites could make any weight of their halves."""

    def change(subtotal: Subtotal) -> Subtotal:
        half = np.concatenate([limbs_of(5 * 2**87)] * 28)  # 2.5 of six
        return replace(subtotal, parts={**subtotal.parts, "count": half})

    consortium = Consortium(tmp_path, patients=PATIENTS)
    run = consortium.run('method = "pooled"\ndegree = 3', missing_nodes='"allow"')
    assert_named(attempt(consortium, in_rounds(change, "costs"), run), "count: expected whole numbers")


def test_a_site_greeted_anew_has_as_many_silos_as_before(tmp_path):
    """Its process starts anew, says so, and is greeted: that is no occasion for another number."""
    consortium, hellos = Consortium(tmp_path, patients=PATIENTS), []
    services = consortium.services()

    def tamper(site, data, service):
        head = open_message(data, consortium.trust).head
        if site == HOSTILE and head.get("stage") == "learn" and len(hellos) == 1:
            services[site].close()
            services[site] = consortium.service(site)
        reply = services[site].reply(data)
        if (site, head["kind"]) != (HOSTILE, "hello"):
            return reply
        hellos.append(data)
        body = json.dumps({"n_silos": 6 if len(hellos) == 1 else 600}).encode()
        return rewrite(reply, consortium.authority.signer(HOSTILE), trust=consortium.trust, to="coordinator", body=body)

    outcome = consortium.run_attempt(consortium.run(EXACT), Loopback(services, tamper))
    close(services)
    assert len(hellos) == 1 + site_request.MOST_REJECTED
    assert_named(outcome, "says that it has 600 silos, and had 6")


def test_after_the_coordinator_starts_anew_a_site_has_as_many_silos_as_before(tmp_path):
    consortium = Consortium(tmp_path, patients=PATIENTS)
    run = consortium.run(EXACT)

    def fail_late(body: bytes, head: dict) -> bytes | None:
        return b"junk" if head.get("stage") == "learn" and head["round"] == 2 else None

    assert attempt(consortium, fail_late, run).ended == "trouble"
    outcome = attempt(consortium, greeting(600), open_run(run.folder))
    assert_named(outcome, "says that it has 600 silos, and had 6")
    expected = Consortium(tmp_path / "undisturbed", patients=PATIENTS)
    assert attempt(consortium, lambda body, head: None, open_run(run.folder)).ended == "done"
    assert digests(run.folder / "results") == digests(expected.finish(expected.run(EXACT)))


def test_a_site_with_several_silos_that_sends_a_graph_is_refused(tmp_path):
    consortium = Consortium(tmp_path, patients=PATIENTS)

    def tamper(site, data, service):
        reply, request = service(data), open_message(data, consortium.trust)
        if site != HOSTILE or request.head["kind"] != "finish":
            return reply
        header = {"run": request.head["run"], "method": "finish", "step": "finish", "round": 1}
        body = encode_update(update_of(Header(**header), HOSTILE, {"graph": np.ones(28)}))
        return rewrite(
            reply, consortium.authority.signer(HOSTILE), trust=consortium.trust, to="coordinator",
            body=body, kind="answer", code=None,
        )  # fmt: skip

    services = consortium.services()
    outcome = consortium.run_attempt(consortium.run(EXACT), Loopback(services, tamper))
    close(services)
    assert_named(outcome, "lima has 6 silos, and sends a graph of one")
