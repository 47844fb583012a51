"""What a site says of its connection: each change once, with the reason."""

import json
from pathlib import Path

import pytest

from silograph.federation.site import contact
from silograph.federation.site.contact import AWAY_SECONDS, PATIENCE_SECONDS, VERSION, Contact, read_connection

WELL = {"kind": "answer", "to": "heartbeat", "code": "ok", "error": ""}
SERVER = "coord.example.org:8002"


class Site:
    """A site whose clock is moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.path, self.said, self.now = folder / "connection.json", list[str](), 100.0
        self.contact = Contact(SERVER, self.path, self.said.append, clock=lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.contact.check()

    @property
    def state(self) -> str:
        known = read_connection(self.path)
        assert known is not None
        return known.state

    def news(self) -> list[str]:
        said, self.said[:] = list(self.said), []
        return said


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    assert made.news() == [f"Connecting to {SERVER}."]
    return made


def test_it_says_that_it_is_connected_when_the_server_answers_and_not_before(site: Site) -> None:
    site.contact.hear({"kind": "server", "version": VERSION, "nvflare": "2.9.0", "clock": 0.5})
    assert (site.state, site.news()) == ("connecting", [])
    for _ in range(3):
        site.contact.hear(WELL)
    assert (site.state, site.news()) == ("connected", [f"Connected to {SERVER}."])
    known = read_connection(site.path)
    assert (known.version, known.nvflare, known.clock) == (VERSION, "2.9.0", 0.5)


def test_it_says_why_there_is_no_connection_again_only_if_the_reason_changes(site: Site) -> None:
    for _ in range(3):
        site.contact.explain("nothing listens there")
    assert site.news() == [f"Not connected to {SERVER}: nothing listens there."]
    site.contact.explain("another program listens there")
    assert site.news() == [f"Not connected to {SERVER}: another program listens there."]


def test_a_server_that_falls_silent_is_away_since_its_last_answer(site: Site) -> None:
    site.contact.hear(WELL)
    last = site.news()
    site.wait(AWAY_SECONDS - 1)
    assert (site.state, last) == ("connected", [f"Connected to {SERVER}."])
    site.wait(2)
    assert site.state == "away"
    site.contact.explain("its port does not answer")
    (said,) = site.news()
    assert said.startswith(f"The server {SERVER} is away since 2")
    assert said.endswith(" UTC: its port does not answer.")
    site.contact.hear(WELL)
    assert (site.state, site.news()) == ("connected", [f"Connected again to {SERVER}."])


def test_a_connection_that_is_lost_is_noticed_with_the_next_heartbeat(site: Site) -> None:
    site.contact.hear(WELL)
    site.contact.hear(WELL | {"code": "target_unreachable"})
    assert site.state == "away"


def test_another_version_and_another_clock_at_the_server_are_said(site: Site) -> None:
    site.contact.hear({"kind": "server", "version": "99.0", "nvflare": "2.9.0", "clock": -7200.0})
    versions, clocks = site.news()
    assert versions == f"The server has silograph 99.0, this site {VERSION}: install the same version everywhere."
    assert clocks == "This machine's clock and the server's are 7200 s apart: set the one that is wrong."


def test_a_site_that_the_server_refuses_says_what_the_server_said(site: Site) -> None:
    site.contact.hear({"kind": "answer", "to": "register", "code": "unauthenticated", "error": "oslo is disabled"})
    site.contact.explain(None)
    assert site.news() == ["The server refuses this site: oslo is disabled. Ask the coordinator."]


def test_a_refusal_holds_until_the_server_answers_whatever_else_is_found_meanwhile(site: Site) -> None:
    site.contact.hear(WELL)
    site.news()
    for _ in range(2):
        site.contact.hear({"kind": "refused", "why": "its key was revoked"})
        site.contact.hear(WELL | {"code": "target_unreachable"})
        site.wait(PATIENCE_SECONDS + 1)
        site.contact.explain(None)
    (said,) = site.news()
    assert said.startswith("The server refuses this site: its key was revoked. Ask the coordinator; for a new key: ")
    assert (site.state, read_connection(site.path).refused) == ("away", "its key was revoked")
    site.contact.explain("nothing listens there")
    site.contact.explain(None)
    assert site.news()[-1] == said
    site.contact.hear(WELL)
    assert (site.state, read_connection(site.path).refused) == ("connected", None)


def test_a_server_that_can_be_reached_is_given_time_to_let_the_site_in(site: Site) -> None:
    site.contact.explain(None)
    assert site.news() == []
    site.wait(PATIENCE_SECONDS + 1)
    site.contact.explain(None)
    assert site.news() == [
        f"Not connected to {SERVER}: it can be reached, and does not let this site in yet. If that lasts, ask the "
        "coordinator."
    ]


def test_the_next_host_knows_what_the_server_said_of_itself_but_is_not_connected(site: Site) -> None:
    site.contact.hear({"kind": "server", "version": "1.2", "nvflare": "2.9.0", "clock": 0.5})
    site.contact.hear(WELL)
    site.contact.end()
    assert site.state == "away"
    again = Site(site.path.parent)
    assert (again.state, read_connection(site.path).version) == ("connecting", "1.2")


def test_a_disk_that_takes_nothing_more_ends_nobody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(contact, "write_bytes", full)
    site.contact.hear(WELL)
    complaint, connected = site.news()
    assert complaint.startswith("connection.json cannot be written (No space left on device)")
    assert connected == f"Connected to {SERVER}."


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"server": 1, "more": 2}'])
def test_a_file_that_is_damaged_is_taken_for_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "connection.json"
    path.write_text(text)
    assert read_connection(path) is None or json.loads(text)
