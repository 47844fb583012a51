"""The site is sovereign: what it does not want to answer it refuses, with a code and no more, and its log has it."""

import hashlib
import json
import os
import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph._util.locks import Lock
from silograph.federation.coordinator import request as site_request
from silograph.federation.envelope import ENVELOPE_FORMAT, HEAD, MAGIC, SignedMessage, VerifiedMessage, open_message
from silograph.federation.refusals import REASONS
from silograph.federation.site import service
from silograph.federation.site import state as memory
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import entries, verify
from silograph.federation.site.service import SiteService
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.protocol import group
from silograph.protocol.codec import decode_task, decode_update, encode_task
from silograph.protocol.messages import Task
from testing.conformance import EXACT
from testing.consortium import (
    NODES,
    SERVER,
    SITES,
    Authority,
    Consortium,
    Loopback,
    approve,
    as_data,
    hold_elsewhere,
    processes,
    rewrite,
    seal,
    self_signed,
    write_roster,
    write_table,
)

SITE, SEED = "oslo", SITES.index("oslo")
OTHER_RUN = "00000000000000aa.1"
REFUSAL_KEYS = {"kind", "re", "run", "version", "code", "to"}  # all that a refusal may hold


@dataclass
class Recorded:
    """A run that went well: the requests that one site got, in order, and what it answered."""

    consortium: Consortium
    run: str
    requests: list[bytes]
    answers: list[bytes]  # bodies

    @property
    def hello(self) -> bytes:
        return self.requests[0]

    def study(self) -> bytes:
        return json.loads(self.open_message(0).body)["study"].encode()

    @property
    def sha(self) -> str:
        return hashlib.sha256(self.study()).hexdigest()

    def open_message(self, k: int) -> VerifiedMessage:
        return open_message(self.requests[k], self.consortium.trust)

    def rewrite(self, k: int, **changes) -> bytes:
        """One of the requests with changes, signed by the coordinator."""
        return rewrite(self.requests[k], self.consortium.server, trust=self.consortium.trust, **changes)

    def with_study(self, **changes) -> bytes:
        """The hello with another study, other nodes or other silos."""
        return self.rewrite(0, body=json.dumps(json.loads(self.open_message(0).body) | changes).encode())

    def of_stage(self, stage: str) -> list[int]:
        return [k for k in range(len(self.requests)) if self.open_message(k).head.get("stage") == stage]


class OneSite:
    """A site whose service is asked by hand."""

    def __init__(self, recorded: Recorded, home: Path, *, n_samples: int = 40, **limits) -> None:
        self.recorded, self.home = recorded, home
        home.mkdir()
        write_table(self.table, SEED, n_samples=n_samples)
        write_roster(home, SITES)
        names = {"name": SITE, "federation": "test", "server": SERVER, "data": Path(self.table.name)}
        write_site(home, SiteSettings(**{**names, "approve_all": True, **limits}))
        self.service = self._new_desk()

    @property
    def table(self) -> Path:
        return self.home / f"{SITE}.csv"

    def _new_desk(self) -> SiteService:
        consortium = self.recorded.consortium
        return SiteService(self.home, signer=consortium.signers[SITE], trust=consortium.trust)

    def restart(self) -> None:
        self.service.close()
        self.service = self._new_desk()

    def reply(self, request: bytes) -> VerifiedMessage:
        """What the service says: always a request of this site, and in a refusal nothing but the code."""
        data = self.service.reply(request)
        reply = open_message(data, self.recorded.consortium.trust)
        assert (reply.sender, reply.text("to")) == (SITE, "coordinator")
        if reply.head["kind"] == "refusal":
            assert reply.body == b""
            assert reply.head.keys() == REFUSAL_KEYS
            assert reply.head["code"] in REASONS
            for secret in (str(self.home).encode(), b".csv", b"Error", b"Traceback"):
                assert secret not in data
            assert self.log(last=1)[-1]["code"] == reply.head["code"]
        assert self.log(last=1)[-1]["what"] == {"refusal": "refused", "answer": "answered"}[reply.head["kind"]]
        return reply

    def code(self, request: bytes) -> str | None:
        """The code of the refusal; nothing if it is none."""
        return self.reply(request).head.get("code")

    def answers(self, *numbers: int) -> None:
        """Each of these requests is answered as in the recorded run, to the byte."""
        for k in numbers:
            reply = self.reply(self.recorded.requests[k])
            assert (reply.head.get("code"), k) == (None, k)
            assert reply.body == self.recorded.answers[k]

    def goes_on_from(self, first: int) -> None:
        """Greeted again, as after a restart, it answers all further requests as in the recorded run."""
        self.answers(0, *range(max(first, 1), len(self.recorded.requests)))

    def log(self, last: int | None = None) -> list[dict]:
        return list(entries(self.home / "audit.jsonl", last=last))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recorded:
    consortium = Consortium(tmp_path_factory.mktemp("recorded"))
    run = consortium.run(EXACT)
    requests, answers = [], []

    def tamper(site, data, service):
        reply = service(data)
        if site == SITE:
            requests.append(data)
            answers.append(open_message(reply, consortium.trust).body)
        return reply

    consortium.finish(run, Loopback(consortium.services(), tamper))
    return Recorded(consortium, run.run_id, requests, answers)


@pytest.fixture
def site(recorded, tmp_path) -> Iterator:
    """Makes sites; in the end the log of each is sound."""
    made = []

    def make(**options) -> OneSite:
        made.append(OneSite(recorded, tmp_path / f"site {len(made)}", **options))
        return made[-1]

    yield make
    for one in made:
        one.service.close()
        if (one.home / "audit.jsonl").is_file():
            verdict = verify(one.home / "audit.jsonl")
            assert (verdict.problem, verdict.torn) == (None, 0)


# --- approval -----------------------------------------------------------------------------------------------------


def test_letters_of_a_run_get_the_answers_of_the_run(site):
    site().goes_on_from(0)


def test_an_unknown_study_waits_until_it_is_approved_by_the_hash_of_its_file(site, recorded):
    one = site(approve_all=False)
    assert [one.code(recorded.hello) for _ in range(3)] == ["unapproved"] * 3
    assert one.code(recorded.requests[1]) == "unknown-run"
    assert (one.home / "pending" / f"{recorded.sha}.toml").read_bytes() == recorded.study()
    approve(one.home, Approvals(one.home).find(recorded.sha).read_bytes())
    one.goes_on_from(0)


def test_a_run_goes_on_by_itself_once_the_last_site_has_approved(tmp_path, monkeypatch):
    monkeypatch.setattr(site_request, "APPROVAL_PAUSE", 0.01)
    consortium = Consortium(tmp_path, sites=SITES[:2])
    consortium.make_site(SITE, SEED, approve_all=False)
    consortium.sites, consortium.signers[SITE] = SITES, consortium.authority.signer(SITE)
    asked = []

    def tamper(name, data, service):
        if name == SITE:
            asked.append(data)
            if len(asked) == 4:
                approve(tmp_path / SITE, Approvals(tmp_path / SITE).pending()[0].path.read_bytes())
        return service(data)

    run = consortium.run(EXACT)
    consortium.finish(run, Loopback(consortium.services(), tamper))
    waited = [entry for entry in entries(tmp_path / SITE / "audit.jsonl") if entry.get("code") == "unapproved"]
    assert len(waited) == 3


@pytest.mark.parametrize("character", [" ", "\n", "#"])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.7, 1.0])
def test_a_study_changed_by_one_byte_is_another_study(site, recorded, place, character):
    one = site(approve_all=False)
    approve(one.home, recorded.study())
    text = recorded.study().decode()
    at = int(place * len(text))
    changed = text[:at] + character + text[at:]
    for run in (recorded.run, OTHER_RUN):
        requests = recorded.with_study(study=changed), recorded.hello
        hellos = [
            rewrite(data, recorded.consortium.server, trust=recorded.consortium.trust, run=run) for data in requests
        ]
        assert [one.code(hello) for hello in hellos] in (["unapproved", None], ["malformed", None])
    one.answers(1)


def test_an_approval_taken_back_in_the_middle_holds_at_once_and_can_be_given_again(site, recorded):
    one = site(approve_all=False)
    approvals = Approvals(one.home)
    approve(one.home, recorded.study())
    one.answers(0, 1, 2, 3)
    approvals.revoke(recorded.sha)
    assert one.code(recorded.requests[4]) == "revoked"
    for request in (recorded.requests[3], recorded.requests[-1]):  # nor is an answer given a second time
        assert one.code(request) == "unknown-run"
    assert one.code(recorded.hello) == "unapproved"
    approve(one.home, recorded.study())
    one.goes_on_from(4)


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nodes",
    [NODES[:-1], (*NODES, "node 8"), (*NODES[:-1], "Node 7"), (*NODES[:-1], NODES[0]), ("a", "b"), (NODES[0],)],
    ids=["one missing", "one too many", "one renamed", "one twice", "others", "one"],
)
def test_nodes_that_the_table_does_not_have_are_refused(site, recorded, nodes):
    one = site()
    assert one.code(recorded.with_study(nodes=nodes)) == "nodes"
    assert not list(one.home.glob("state/*/rounds"))
    one.answers(0)


def test_the_order_of_nodes_is_the_studys_affair(site, recorded):
    assert site().code(recorded.with_study(nodes=NODES[::-1])) is None


def test_nodes_sent_along_must_be_those_of_the_study(site, recorded):
    listed = recorded.study().decode().replace('"nodes.txt"', json.dumps(list(NODES)))
    one = site()
    assert one.code(recorded.with_study(study=listed)) is None
    assert one.code(recorded.with_study(study=listed, nodes=NODES[::-1])) == "nodes"


def test_a_long_list_of_nodes_costs_the_site_nothing(site, recorded):
    nodes = [f"node {k}" for k in range(6000)]
    request = recorded.with_study(nodes=nodes, study='forbid = [["node 0", "node 1"]]\n' + recorded.study().decode())
    one = site()
    tracemalloc.start()
    try:
        assert one.code(request) == "nodes"
        assert tracemalloc.get_traced_memory()[1] < 50e6  # its pairs would take 160 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("least", "code"), [(40, None), (41, "samples")])
def test_few_samples_are_not_learned_from(site, recorded, least, code):
    assert site(min_samples=least).code(recorded.hello) == code


def test_a_method_that_the_site_does_not_allow_is_refused(site, recorded):
    assert site(methods=("pooled", "ditto")).code(recorded.hello) == "method"


@pytest.mark.parametrize(("most", "code"), [(4, None), (3, "rounds")])
def test_a_study_that_asks_for_more_rounds_than_allowed_is_refused_at_once(site, recorded, most, code):
    assert site(max_rounds=most).code(recorded.hello) == code  # it asks for 4


def test_rounds_are_counted_over_all_runs_of_a_study_and_over_restarts(site, recorded):
    one = site(max_rounds=7)
    one.answers(0, 1, 2, 3, 4)
    one.answers(4, 4)  # the same again is no further round
    other = OTHER_RUN
    first = recorded.rewrite(1, run=other, body=changed_task(recorded.open_message(1).body, run=other))
    assert [one.code(request) for request in (recorded.rewrite(0, run=other), first)] == [None, None]
    one.restart()
    one.answers(0, 5, 6)
    assert one.code(recorded.requests[7]) == "rounds"
    one.answers(6)
    approve(one.home, recorded.study(), fresh=True)
    one.goes_on_from(7)


def changed_task(body: bytes, parts: dict | None = None, **header) -> bytes:
    """A task with another header, or with some parts changed."""
    task = decode_task(body)
    known = {name: getattr(task.header, name) for name in ("run", "method", "step", "round")}
    return encode_task(Task(header=type(task.header)(**known | header), parts={**task.parts, **(parts or {})}))


def test_a_site_that_keeps_its_numbers_to_itself_sends_none_of_them(site, recorded):
    one = site(report=False, share_graph=False)
    reported, silent = [], []
    for k in range(1, len(recorded.requests) - 1):
        one.answers(0)
        reported.append(decode_update(recorded.answers[k]).reported)
        silent.append(decode_update(one.reply(recorded.requests[k]).body).reported)
    assert any(reported)
    assert not any(silent)
    assert one.code(recorded.requests[-1]) == "kept"
    assert (one.home / "results" / recorded.run / "silos" / SITE / "graph.npz").exists()


def test_its_state_is_told_before_any_approval_and_holds_no_more_than_a_word(site, recorded):
    one = site(approve_all=False)
    status, _ = SignedMessage({"kind": "status"}, b"", recorded.consortium.server).to(SITE)
    assert json.loads(one.reply(status).body).keys() == {"version", "data"}
    assert json.loads(one.reply(status).body)["data"] == "ready"
    one.table.write_text("a,b\n1,x\n")
    (one.home / "nodes.txt").write_text("a\nc\n")
    assert json.loads(one.reply(status).body)["data"] == "other nodes"
    one.table.unlink()
    assert json.loads(one.reply(status).body)["data"] == "not readable"
    one.table.write_text("a,,b\n1,2,3\n")
    answer = one.reply(status)
    assert json.loads(answer.body) == {"version": service.VERSION, "data": "not readable"}
    (last,) = one.log(last=1)
    assert f"{one.table.name}, column 2: expected a node name, got ''" in last["detail"]


# --- rounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True])
def test_a_round_has_one_answer_however_often_it_is_asked(site, recorded, restarted):
    one = site()
    one.answers(0)
    for k in range(1, len(recorded.requests) - 1):
        if restarted:
            one.restart()
            one.answers(0)
        one.answers(k, k)
        body = recorded.open_message(k).body
        other = changed_task(body, {name: as_other(part) for name, part in decode_task(body).parts.items()})
        if other != body:
            assert one.code(recorded.rewrite(k, body=other)) == "conflict"
        if recorded.open_message(k).head["stage"] == "learn":
            assert (
                one.code(recorded.rewrite(k, scalars=recorded.open_message(k).head["scalars"] | {"rho": 9.0}))
                == "conflict"
            )
        assert one.code(recorded.rewrite(k, body=changed_task(body, run=OTHER_RUN))) == "malformed"
        one.answers(0, k)


def as_other(part):
    return part + 0.25 if isinstance(part, float) else np.where(np.arange(part.size) == 0, part + 0.25, part)


def test_a_round_out_of_turn_is_refused_and_spoils_nothing(site, recorded):
    one = site()
    one.answers(0, 1)
    assert one.code(recorded.requests[3]) == "out-of-turn"
    assert one.code(recorded.requests[2]) == "unknown-run"
    one.answers(0, 2)
    assert one.code(recorded.requests[recorded.of_stage("learn")[1]]) == "out-of-turn"
    one.answers(0)
    assert one.code(recorded.requests[1]) == "conflict"  # one that was answered long ago
    one.goes_on_from(3)


def test_the_end_of_a_run_cannot_be_asked_for_before_it(site, recorded):
    one = site()
    one.answers(0, 1, 2)
    assert one.code(recorded.requests[-1]) == "out-of-turn"
    one.goes_on_from(3)


def test_set_up_cannot_be_asked_for_again_once_learning_has_begun(site, recorded):
    """Else the first round of learning would come due again, and could be asked with any other consensus."""
    first = recorded.of_stage("learn")[0]
    one = site()
    one.answers(*range(first + 1))
    assert one.code(recorded.requests[1]) == "conflict"
    one.restart()
    one.answers(0)
    assert one.code(recorded.requests[1]) == "conflict"
    other = changed_task(recorded.open_message(first).body, {"u": np.full(28, 0.5)})
    assert one.code(recorded.rewrite(first, body=other)) == "conflict"
    one.goes_on_from(first)


def test_the_models_parameters_hold_for_the_whole_of_learning(site, recorded):
    """Else each round could be asked of another problem, and tell more of the data than one study does."""
    first, second = recorded.of_stage("learn")[:2]
    one = site()
    one.answers(*range(first + 1))
    for _ in range(2):
        scalars = recorded.open_message(second).head["scalars"]
        assert one.code(recorded.rewrite(second, scalars=scalars | {"alpha": 2 * scalars["alpha"]})) == "conflict"
        one.restart()
        one.answers(0)
    one.goes_on_from(second)


def test_a_run_keeps_its_study_its_silos_and_its_nodes(site, recorded):
    one = site()
    one.answers(0, 1)
    others = [
        recorded.with_study(study=recorded.study().decode() + "\n"),
        recorded.with_study(silos=["oslo", "lima", "kyoto"]),
        recorded.with_study(nodes=NODES[::-1]),
    ]
    for _ in range(2):
        assert [one.code(request) for request in others] == ["conflict"] * 3
        one.restart()
    one.goes_on_from(0)


def test_a_run_that_the_site_is_not_in_is_refused(site, recorded):
    assert site().code(recorded.with_study(silos=["kyoto", "lima"])) == "malformed"


SITES_LISTED = 'sites = ["kyoto", "lima", "oslo"]\n'


@pytest.mark.parametrize(
    ("top", "policy", "silos", "code"),
    [
        (SITES_LISTED, "", ["oslo"], "sites"),
        (SITES_LISTED, "", ["lima", "oslo"], "sites"),
        (SITES_LISTED, "", ["kyoto", "lima", "oslo"], None),
        (SITES_LISTED, "", ["kyoto", "lima", "oslo", "paris"], "sites"),
        (SITES_LISTED, 'on_missing = "continue"', ["lima", "oslo"], None),
        (SITES_LISTED, 'on_missing = "continue"', ["oslo"], "sites"),
        (SITES_LISTED, 'on_missing = "continue"\nquorum = 3', ["lima", "oslo"], "sites"),
        ("", "quorum = 3", ["lima", "oslo"], "sites"),
        ("", "quorum = 2", ["lima", "oslo"], None),
    ],
)
def test_a_site_is_asked_together_with_as_many_others_as_the_approved_study_promises(
    site, recorded, top, policy, silos, code
):
    """The sum over one site is that site's own answer: who takes part is no affair of the coordinator alone."""
    study = top + recorded.study().decode().replace("[policy]\n", f"[policy]\n{policy}\n")
    assert site().code(recorded.with_study(study=study, silos=silos)) == code


def test_runs_held_now_are_not_pushed_out_by_new_ones(site, recorded, monkeypatch):
    monkeypatch.setattr(memory, "MOST_RUNS_KEPT", 3)
    one = site()
    one.answers(0, 1, 2)
    for k in range(5):
        assert one.code(recorded.rewrite(0, run=f"{k:016x}.1")) is None
    one.answers(3)
    one.restart()
    before = one.table.read_bytes()
    one.table.write_bytes(before.replace(b"0.1", b"0.2", 1))
    assert one.code(recorded.hello) == "data-changed"  # the site still knows what the run began with
    one.table.write_bytes(before)
    one.goes_on_from(4)


def test_of_runs_that_have_ended_the_latest_are_kept(site, recorded, monkeypatch):
    monkeypatch.setattr(memory, "MOST_RUNS_KEPT", 3)
    one = site()
    for k in range(6):
        assert one.code(recorded.rewrite(0, run=f"{k:016x}.1")) is None
        first = changed_task(recorded.open_message(1).body, run=f"{k:016x}.1")
        assert one.code(recorded.rewrite(1, run=f"{k:016x}.1", body=first)) is None
        one.restart()
    assert len(list((one.home / "state").iterdir())) == 3 + 1  # kept when the last one was announced, and that one
    assert (one.home / "state" / f"{5:016x}.1").is_dir()


# --- data ---------------------------------------------------------------------------------------------------------


def test_data_that_were_touched_but_not_changed_are_the_same(site):
    one = site()
    one.answers(0, 1)
    os.utime(one.table, (1, 1))
    one.answers(2)
    copy = one.table.with_suffix(".copy")
    shutil.copy(one.table, copy)
    copy.replace(one.table)
    one.answers(3)
    one.restart()
    one.goes_on_from(4)


@pytest.mark.parametrize("restarted", [False, True])
def test_changed_data_are_refused_until_the_old_ones_are_back(site, recorded, restarted):
    one = site()
    one.answers(0, 1)
    before = one.table.read_bytes()
    one.table.write_bytes(before.replace(b"0.1", b"0.2", 1))
    if restarted:
        one.restart()
    else:
        assert one.code(recorded.requests[2]) == "data-changed"
    assert [one.code(recorded.hello) for _ in range(3)] == ["data-changed"] * 3
    one.table.write_bytes(before)
    one.goes_on_from(2)


def test_data_that_vanish_are_refused_until_they_are_back(site, recorded):
    one = site()
    aside = one.table.replace(one.table.with_suffix(".aside"))
    assert one.code(recorded.hello) == "data"
    aside.replace(one.table)
    one.answers(0, 1)
    one.table.replace(aside)
    assert one.code(recorded.requests[2]) == "data-changed"
    assert one.code(recorded.hello) == "data"
    aside.replace(one.table)
    one.goes_on_from(2)


@pytest.mark.parametrize("content", ["", "a,b\n", "node 0,node 1\n1,x\n", "\x00\xff\n", "1,2\n3\n"])
def test_data_that_cannot_be_read_are_refused_without_a_reason(site, recorded, content):
    one = site()
    one.table.write_text(content, encoding="latin-1")
    assert one.code(recorded.hello) in ("data", "nodes")


# --- strangers ----------------------------------------------------------------------------------------------------


def test_only_the_coordinator_is_answered_and_only_what_is_for_this_site(site, recorded):
    consortium, other = recorded.consortium, Authority()
    strangers = {
        "not-coordinator": [
            rewrite(recorded.hello, consortium.signers["lima"], trust=consortium.trust),
            rewrite(recorded.hello, consortium.signers[SITE], trust=consortium.trust),
            recorded.rewrite(0, to="lima"),
            recorded.rewrite(0, to="coordinator"),
        ],
        "malformed": [
            rewrite(recorded.hello, signer, trust=consortium.trust)
            for signer in (
                other.signer(SERVER),
                Authority("root").signer(SERVER),
                self_signed(SERVER),
                self_signed("root"),
                consortium.authority.new_signer(SERVER, days=(-3, -1)),
                consortium.authority.new_signer(SERVER, days=(1, 3)),
            )
        ],
    }
    one = site()
    for code, requests in strangers.items():
        assert [one.code(request) for request in requests] == [code] * len(requests)
    assert not (one.home / "state").exists()
    one.goes_on_from(0)


def test_a_certificate_of_the_coordinator_with_another_key_signs_nothing(site, recorded):
    """The certificate is no secret: it comes with every request."""
    consortium = recorded.consortium
    stolen = type(consortium.server)(certificate=consortium.server.certificate, key=consortium.signers["lima"].key)
    assert site().code(rewrite(recorded.hello, stolen, trust=consortium.trust)) == "malformed"


@given(data=st.binary(max_size=300), front=st.sampled_from([b"", MAGIC, MAGIC + b"\x01\x00"]))
@settings(max_examples=60)
def test_junk_is_refused(stranded, data, front):
    assert stranded.code(front + data) == "malformed"


@given(share=st.floats(0, 1, exclude_max=True), more=st.binary(max_size=3))
def test_a_letter_cut_short_is_refused(stranded, share, more):
    request = stranded.recorded.requests[2]
    cut = request[: int(share * len(request))]
    assert stranded.code(cut + more if cut + more != request else cut) == "malformed"


@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=120)
def test_a_letter_with_one_bit_flipped_is_refused(stranded, place, bit):
    request = bytearray(stranded.recorded.requests[2])
    request[place % len(request)] ^= 1 << bit
    assert stranded.code(bytes(request)) == "malformed"


@pytest.mark.slow
@pytest.mark.parametrize("bit", range(8))
def test_a_letter_with_any_one_bit_flipped_is_refused(stranded, bit):
    request = stranded.recorded.requests[2]
    for place in range(len(request)):
        assert stranded.code(request[:place] + bytes([request[place] ^ 1 << bit]) + request[place + 1 :]) == "malformed"


def test_a_certificate_of_an_impossible_version_is_refused(stranded, recorded):
    """What the library for certificates raises then is no ValueError."""
    request, pem = recorded.requests[2], recorded.consortium.server.certificate
    at = request.index(pem) + 44  # where Base64 holds the version
    for place in (at, at + 1):
        for other in b"AEIMQUYcgkosw048":
            if other != request[place]:
                assert stranded.code(request[:place] + bytes([other]) + request[place + 1 :]) == "malformed"


@pytest.fixture(scope="module")
def stranded(recorded, tmp_path_factory) -> Iterator[OneSite]:
    """A site in the middle of a run, to which anything may come: in the end it goes on as if nothing had."""
    one = OneSite(recorded, tmp_path_factory.mktemp("stranded") / "home")
    one.answers(0, 1)
    yield one
    one.goes_on_from(2)
    one.service.close()
    assert verify(one.home / "audit.jsonl").problem is None


@pytest.mark.parametrize("sizes", [(65535, 2**32 - 1, 2**32 - 1, 2**64 - 1), (256, 0, 0, 2**33), (0, 10**6, 20000, 0)])
def test_sizes_that_a_letter_only_claims_cost_nothing(site, sizes):
    one = site()
    tracemalloc.start()
    try:
        assert one.code(HEAD.pack(MAGIC, ENVELOPE_FORMAT, *sizes) + b"some bytes") == "malformed"
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


# --- the coordinator itself, gone astray ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"no JSON",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"\xff",
        b"[" * 500_000,
        b'{"to":"oslo","kind":' + b"[" * 500_000,
    ],
    ids=["empty", "text", "list", "null", "number", "string", "no UTF-8", "nested", "nested inside"],
)
def test_a_head_that_is_none_is_refused_even_if_the_coordinator_signed_it(stranded, recorded, head):
    assert stranded.code(seal(head, b"", recorded.consortium.server)) == "malformed"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": None},
        {"kind": "confess"},
        {"kind": 5},
        {"kind": ["round"]},
        {"run": None},
        {"run": 5},
        {"run": ["a"]},
        {"run": {"a": 1}},
        {"run": "../../../tmp/elsewhere"},
        {"run": "/etc/passwd"},
        {"run": "A" * 10**5},
        {"run": "short"},
        {"stage": None},
        {"stage": "finish"},
        {"stage": 1},
        {"round": 10**30},
        {"round": [1, 2]},
        {"round": {"a": {}}},
        {"step": 10**400},
        {"scalars": [1.0]},
        {"scalars": {"alpha": "1"}},
        {"scalars": {"alpha": 1}},
        {"scalars": {"alpha": True}},
        {"body": b""},
        {"body": b"junk"},
        {"body": bytes(10**6)},
        {"to": "\ud800"},
    ],
    ids=lambda change: f"{next(iter(change))} {str(next(iter(change.values())))[:20]!a}",
)
def test_a_question_that_makes_no_sense_is_refused_as_such(stranded, recorded, change):
    files = sorted(stranded.home.parent.rglob("*"))
    code = stranded.code(recorded.rewrite(2, **change))
    assert code in ("malformed", "unknown-run", "not-coordinator")
    assert sorted(stranded.home.parent.rglob("*")) == files
    stranded.answers(0, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"[" * 100_000,
        b'{"study": 5, "nodes": [], "silos": []}',
        b'{"study": "", "nodes": [], "silos": []}',
        b'{"study": "name = 1", "nodes": null, "silos": null}',
        b'{"study": "\\ud800", "nodes": ["a"], "silos": ["oslo"]}',
        b'{"study": "' + b"a." * 400_000 + b'a = 1", "nodes": ["a"], "silos": ["oslo"]}',
        b'{"study": "' + b"x" * 1_000_001 + b'", "nodes": ["a"], "silos": ["oslo"]}',
    ],
    ids=lambda body: f"{body[:30]!r}, {len(body)}",
)
def test_a_study_that_is_none_is_refused(stranded, recorded, body):
    assert stranded.code(recorded.rewrite(0, body=body)) == "malformed"
    stranded.answers(0, 1)


@pytest.mark.parametrize("nodes", [[1, 2], [None], [["a"]], "text", [""], 5, {}])
def test_nodes_that_are_no_names_are_refused(stranded, recorded, nodes):
    assert stranded.code(recorded.with_study(nodes=nodes)) in ("malformed", "nodes")


@pytest.mark.parametrize(
    "scalars", [{}, {"alpha": float("nan")}, {"rho": float("inf")}, {"alpha": -1.0}, {"beta": 0.0}]
)
def test_parameters_of_the_model_that_make_no_sense_end_in_a_refusal(site, recorded, scalars):
    first = recorded.of_stage("learn")[0]
    one = site()
    one.answers(*range(first))
    known = recorded.open_message(first).head["scalars"]
    assert one.code(recorded.rewrite(first, scalars={**known, **scalars} if scalars else {})) is not None
    one.goes_on_from(first)


@pytest.mark.parametrize("part", [float("nan"), float("inf"), -1.0, 1e200])
def test_a_task_out_of_bounds_is_refused(site, recorded, part):
    first = recorded.of_stage("learn")[0]
    one = site()
    one.answers(*range(first))
    other = changed_task(recorded.open_message(first).body, {"u": np.full(28, part)})
    assert one.code(recorded.rewrite(first, body=other)) == "out-of-turn"
    one.goes_on_from(first)


def test_the_log_tells_the_round_that_was_answered_not_the_one_on_the_envelope(site, recorded):
    one = site()
    one.answers(0, 1)
    assert one.code(recorded.rewrite(2, round=40, step="costs")) == "malformed"
    one.answers(0, 2)
    task = decode_task(recorded.open_message(2).body).header
    asked, answer_task = one.log()[-2:]
    assert (asked["step"], asked["round"], answer_task["round"]) == (task.step, task.round, task.round)


def test_the_log_tells_what_left_the_site_by_name_and_size(site, recorded):
    one = site()
    one.goes_on_from(0)
    answered = [entry for entry in one.log() if entry["what"] == "answered"]
    assert len(answered) == len(recorded.requests)
    for entry, body in list(zip(answered, recorded.answers, strict=True))[1:]:
        update = decode_update(body)
        for name in update._parts:
            assert f"{name} (" in entry["left"]
        for name in update.reported:
            assert f"{name} (1, reported)" in entry["left"]


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_failure_stays_at_the_site_and_the_next_attempt_is_as_undisturbed(site, recorded, monkeypatch, after):
    one = site()
    k = recorded.of_stage("learn")[2]
    one.answers(*range(k))

    def failing(*about, **options):
        if after:
            genuine(*about, **options)
        raise FloatingPointError(f"{one.table}: 40 samples")

    genuine = group.answer_task
    monkeypatch.setattr(group, "answer_task", failing)
    assert one.code(recorded.requests[k]) == "internal"
    assert one.code(recorded.requests[k]) == "unknown-run"
    monkeypatch.undo()
    trace = one.home / "errors.log"
    assert trace.stat().st_mode & 0o777 == 0o600
    assert f"FloatingPointError: {one.table}: 40 samples" in trace.read_text()
    (detail,) = [entry["detail"] for entry in one.log() if entry.get("code") == "internal"]
    assert "FloatingPointError" in detail
    assert "errors.log" in detail
    assert "40 samples" not in detail  # which might be a cell of the table
    one.goes_on_from(k)


def test_an_answer_that_could_not_be_kept_does_not_leave(site, recorded, monkeypatch):
    one = site()
    one.answers(0, 1)

    def full(self, tree):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("silograph.engine.checkpoint.Checkpoint.save", full)
    assert one.code(recorded.requests[2]) == "internal"
    monkeypatch.undo()
    one.goes_on_from(2)


def test_what_cannot_be_written_down_is_not_answered(site, recorded):
    one = site()
    one.answers(0, 1)
    log = one.home / "audit.jsonl"
    log.replace(log.with_suffix(".aside"))
    log.mkdir()
    for request in (recorded.requests[2], recorded.hello, b"junk"):
        reply = open_message(one.service.reply(request), recorded.consortium.trust)
        assert (reply.head["kind"], reply.body) == ("refusal", b"")
    log.rmdir()
    log.with_suffix(".aside").replace(log)
    one.goes_on_from(2)


@pytest.mark.parametrize("damage", ["about.json", "rounds"])
def test_state_that_was_damaged_is_told_as_a_failure_and_once_mended_the_run_goes_on(site, recorded, damage):
    one = site()
    one.answers(0, 1, 2)
    one.service.close()
    state = one.home / "state" / recorded.run
    path = state / damage if damage == "about.json" else next((state / "rounds").glob("*.json"))
    before = path.read_bytes()
    path.write_bytes(before[: len(before) // 2])
    assert [one.code(recorded.hello) for _ in range(2)] == ["internal"] * 2
    path.write_bytes(before)
    one.goes_on_from(3)


def test_two_processes_of_one_site_do_not_share_a_run(site, recorded, monkeypatch):
    take = Lock.take
    monkeypatch.setattr(Lock, "take", lambda self, wait=0.0: take(self, wait=min(wait, 0.1)))
    one, consortium = site(), recorded.consortium
    here, there = processes().Pipe()
    arguments = (one.home, consortium.authority.root, as_data(consortium.signers[SITE]), recorded.requests[:3], there)
    process = processes().Process(target=hold_elsewhere, args=arguments)
    process.start()
    try:
        replies = [open_message(data, consortium.trust) for data in here.recv()]
        assert [reply.head.get("code") for reply in replies] == [None] * 3
        assert [reply.body for reply in replies] == recorded.answers[:3]
        assert [one.code(recorded.hello) for _ in range(3)] == ["busy"] * 3
        assert one.code(recorded.requests[3]) == "unknown-run"
    finally:
        here.send("go")
        process.join()
    one.goes_on_from(2)
