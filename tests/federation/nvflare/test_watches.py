"""What a site's host notices, without processes that run."""

import logging
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.federation.folders import SiteFolder
from silograph.federation.invitation import Invitation, write_invitation
from silograph.federation.nvflare import watches
from silograph.federation.nvflare.contact import Presence
from silograph.federation.nvflare.host_log import HostLog
from silograph.federation.nvflare.watches import SiteWatch
from silograph.federation.reach import Reached
from testing.waiting import eventually

Said = list[str]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SiteWatch, Said]:
    """A site's watch that tries the way to the server at each look, and what it says."""
    folder, said = SiteFolder(tmp_path), Said()
    about = {"server": "localhost", "port": 1, "sites": ("lima", "oslo"), "fingerprint": "0" * 64}
    write_invitation(folder.invitation, Invitation(name="test", **about))
    folder.log.parent.mkdir()
    monkeypatch.setattr(watches, "PROBE_SECONDS", 0.0)
    return SiteWatch(folder, HostLog(logging.Logger("x"), said.append)), said


def test_what_is_said_and_tried_is_the_address_that_the_kit_connects_to(tmp_path: Path) -> None:
    folder, said = SiteFolder(tmp_path), Said()
    about = {"server": "localhost", "port": 1, "sites": ("lima", "oslo"), "fingerprint": "0" * 64}
    write_invitation(folder.invitation, Invitation(name="test", **about))
    folder.log.parent.mkdir()
    folder.kit.startup.mkdir(parents=True)
    folder.kit.config.write_text('{"servers": [{"service": {"target": "localhost:2"}}]}')
    watch = SiteWatch(folder, HostLog(logging.Logger("x"), said.append))
    says((watch, said), "nothing listens at port 2 of localhost")
    assert "Connecting to localhost:2." in said[0]


def says(watched: tuple[SiteWatch, Said], words: str) -> None:
    watch, said = watched

    def is_said() -> bool:
        watch.look()
        return any(words in line for line in said)

    eventually(is_said, 30)


def test_a_try_that_fails_is_told_and_is_not_the_last(watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Reached:
        raise ZeroDivisionError("what nobody thought of")

    with monkeypatch.context() as broken:
        broken.setattr(watches, "reach", fails)
        says(watched, "could not be tried (ZeroDivisionError: what nobody thought of)")
    says(watched, "nothing listens at port 1 of localhost")


def test_a_machine_without_a_thread_to_spare_tries_again(watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as busy:
        busy.setattr("threading.Thread.start", none)
        watched[0].look()
    says(watched, "nothing listens at port 1 of localhost")


# --- who is there -----------------------------------------------------------------------------------------------------


def test_a_site_is_there_until_its_last_connection_closes_and_no_line_is_said_twice():
    presence = Presence()
    assert presence.came("oslo", "a") == "Site oslo connected"
    assert presence.came("oslo", "a") == ""  # a second greeting over it
    assert presence.came("oslo", "b") == ""  # made anew, before the old one is closed
    assert presence.left("oslo", "a") == ""
    assert presence.left("oslo", "b") == "Site oslo is not connected any more"
    assert presence.left("oslo", "b") == ""
    assert presence.came("oslo", "c") == "Site oslo connected, for the 2nd time,"
    assert presence.left("oslo", "c") == "Site oslo is not connected any more, for the 2nd time"
