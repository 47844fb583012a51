"""An approval is of one study and one table: what a changed table gives away, nobody gives away unawares."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from silograph.federation.coordinator import request as site_request
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.envelope import open_message
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.audit import entries
from silograph.federation.site.ledger import Ledger
from silograph.graph.pairs import Pairs
from silograph.protocol.codec import decode_update
from silograph.protocol.messages import parts_of
from testing.consortium import NODES, SITES, Consortium, Loopback, approve, close

SITE = "oslo"
QUICK = 'method = "independent"\nalpha = 0.5\nbeta = 0.25'


class Nights:
    """A consortium that runs one study night after night; what oslo sends in the step `costs` is kept."""

    def __init__(self, folder: Path, **limits) -> None:
        self.consortium, self.home = Consortium(folder, **limits), folder / SITE
        self.costs: list[np.ndarray] = []
        self.run = self.consortium.run(QUICK)

    def night(self) -> str:
        """A new run of the study: how it ended, or the code by which oslo had it wait."""
        waits: list[str] = []

        def tamper(site, data, service):
            reply = service(data)
            opened = open_message(reply, self.consortium.trust)
            if site == SITE and opened.head.get("code"):
                waits.append(opened.head["code"])
            if site == SITE and open_message(data, self.consortium.trust).head.get("step") == "costs":
                self.costs.append(np.asarray(parts_of(decode_update(opened.body))["cost"]))
            return reply

        services = self.consortium.services()
        self.run = self.consortium.run(QUICK)
        outcome = run_attempt(
            self.run,
            Loopback(services, tamper),
            attempt="a",
            signer=self.consortium.server,
            trust=self.consortium.trust,
            stopped=lambda: bool(waits),
        )
        close(services)
        return waits[0] if waits else outcome.ended

    def give(self, n_samples: int) -> np.ndarray:
        """The table with so many samples: each version begins with the rows of the shorter ones."""
        rows = np.random.default_rng(5).normal(size=(200, len(NODES)))[:n_samples]
        form = {"delimiter": ",", "header": ",".join(NODES), "comments": "", "fmt": "%.17g"}
        np.savetxt(self.consortium.table(SITE), rows, **form)
        return rows

    def approve(self, **options) -> None:
        approve(self.home, self.run.study().text, **options)

    def details(self) -> list[str]:
        return [entry["detail"] for entry in entries(self.home / "audit.jsonl") if entry.get("code") == "unapproved"]


@pytest.fixture
def nights(tmp_path, monkeypatch):
    monkeypatch.setattr(site_request, "APPROVAL_PAUSE", 0.01)

    def make(**limits) -> Nights:
        made = Nights(tmp_path, **limits)
        made.give(50)
        if not limits.get("approve_all", True):
            for site in SITES:
                approve(tmp_path / site, made.run.study().text)
        return made

    return make


def recovered(costs: list[np.ndarray], n_rows: int) -> np.ndarray:
    """The row by which two versions differ, but for its mean and sign: what a coordinator makes of two answers."""
    pairs = Pairs.all(len(NODES))
    difference = (n_rows + 1) * costs[1] - n_rows * costs[0]
    square = np.zeros((len(NODES), len(NODES)))
    square[pairs.rows, pairs.cols] = square[pairs.cols, pairs.rows] = difference
    centre = np.eye(len(NODES)) - 1 / len(NODES)
    values, vectors = np.linalg.eigh(-centre @ square @ centre / 2)
    return vectors[:, -1] * np.sqrt(values[-1])


def test_an_approved_study_is_not_run_nightly_on_a_growing_table(nights):
    """The attack: approved once, run each night; the answers of two nights differ by the patient who came."""
    made = nights(approve_all=False)
    assert made.night() == "done"
    patient = made.give(51)[-1]
    assert made.night() == "unapproved"
    assert len(made.costs) == 1, "nothing left of the changed table"
    (waiting,) = Approvals(made.home).pending()
    assert waiting.sha == made.run.study().sha256
    assert "the table has changed, to version" in made.details()[-1]
    assert "approve it anew" in made.details()[-1]
    made.give(50)
    assert made.night() == "done"  # the version that was approved
    made.give(51)
    made.approve(despite=True)
    assert made.night() == "done"
    found, centred = recovered([made.costs[0], made.costs[-1]], 50), patient - patient.mean()
    assert np.allclose(abs(found), abs(centred)), "which is why it takes a person's word"


def test_an_approval_without_that_word_does_not_hold_against_what_was_answered_meanwhile(nights):
    made = nights(approve_all=False)
    assert made.night() == "done"
    made.give(51)
    made.approve()  # as if the difference had been large when it was given
    assert made.night() == "unapproved"
    assert "show 1 row by themselves" in made.details()[-1]
    assert len(made.costs) == 1


def test_who_approves_everything_does_not_approve_a_difference_of_few_rows(nights):
    made = nights()
    assert made.night() == "done"
    made.give(51)
    assert made.night() == "unapproved"
    assert "show 1 row by themselves; site.toml asks for min_new_samples = 20" in made.details()[-1]
    assert "--despite-difference" in made.details()[-1]
    made.give(49)
    assert made.night() == "unapproved"
    made.give(69)
    assert made.night() == "unapproved"
    assert len(made.costs) == 1
    made.give(70)
    assert made.night() == "done"
    made.give(51)
    assert made.night() == "unapproved"
    made.approve(despite=True)
    assert made.night() == "done"


def test_a_site_may_ask_for_more_rows_or_for_none(nights):
    made = nights(min_new_samples=0)
    assert made.night() == "done"
    made.give(51)
    assert made.night() == "done"


def test_a_version_is_compared_again_before_its_first_answer(nights):
    """Greeted for one version, then another is answered, then the first one is asked for its first round."""
    at = nights(approve_all=True)
    at.give(60)
    greeted, services = at.consortium.run(QUICK), at.consortium.services()
    recorded: list[bytes] = []

    def tamper(site, data, service):
        recorded.append(data) if site == SITE else None
        return service(data)

    head = {"stopped": lambda: len(recorded) > 1, "signer": at.consortium.server, "trust": at.consortium.trust}
    run_attempt(greeted, Loopback(services, tamper), attempt="a", **head)
    hello, first = recorded[0], recorded[1]
    for path in ("state", "answered", "ledger", "rounds"):
        shutil.rmtree(at.home / path, ignore_errors=True)
    close(services)
    services = at.consortium.services()
    services[SITE].reply(hello)  # for sixty rows
    at.give(61)
    assert at.night() == "done"
    at.give(60)
    reply = open_message(services[SITE].reply(first), at.consortium.trust)
    assert reply.head.get("code") == "unapproved", "one row would show"
    close(services)


def test_what_was_answered_is_written_down_before_the_first_answer_leaves(nights):
    made = nights()
    assert made.night() == "done"
    (answered,) = Ledger(made.home).answered()
    ((run, rounds),) = answered.studies[made.run.study().sha256].items()
    assert (answered.size, run, rounds) == (50, made.run.run_id, 3)  # costs, learn, close
    for path in (made.home / "ledger").glob("*.json"):
        path.unlink()
        path.with_name(f"{path.name}.new").mkdir()  # where the file is written first: now it cannot be
    assert made.night() == "internal"
    assert len(made.costs) == 1, "what cannot be written down does not leave"


def test_fifty_studies_that_wait_stay_and_the_log_says_how_to_make_room(nights):
    made = nights(approve_all=False)
    approvals = Approvals(made.home)
    approvals.revoke(made.run.study().sha256)
    texts = [f"n = {k}" for k in range(50)]
    for text in texts:
        approvals.note_pending(sha_of(text.encode()), text, asked_by="c")
    assert made.night() == "unapproved"
    assert [one.path.read_text() for one in approvals.pending()] == texts
    assert "50 studies wait already, so it is not kept" in made.details()[-1]
    assert "--reject-all" in made.details()[-1]
    approvals.reject(sha_of(texts[0].encode()))
    assert made.night() == "unapproved"
    assert approvals.pending()[-1].sha == made.run.study().sha256
