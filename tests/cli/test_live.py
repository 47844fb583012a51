"""The live page: in a real browser it follows a file beside it, and shows what the server's desk tells."""

import time

import pytest

pytest.importorskip("nvflare")

from silograph.cli.federation import live
from silograph.cli.federation.live import LivePage, keep_page, kept_beside
from silograph.errors import OutputError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.report.live import data_file
from testing.browser import Look, launched
from testing.consortium import SITES
from testing.lead import RUN, STUDY, Lead
from testing.pages import data_of
from testing.waiting import eventually

EVIL = "</script><script>document.title = 'done'</script><img src=http://elsewhere.example/x>\u202e"
WORK = {"seconds": 0.1, "bytes_down": 600_000, "bytes_up": 400_000}


@pytest.fixture(scope="module")
def browser():
    with launched() as one:
        yield one


class Session:
    """Asks the desk, unless the server is away."""

    def __init__(self, lead):
        self.lead, self.away = lead, False

    def ask(self, what, **about):
        if self.away:
            raise ServerAwayError("The server does not answer: nothing listens on port 8002.")
        return self.lead.ask(what, **about)


@pytest.fixture
def lead(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "EVERY", 0.2)
    return Lead(tmp_path / "fed")


@pytest.fixture
def session(lead):
    return Session(lead)


@pytest.fixture
def page(lead, session, tmp_path):
    return LivePage(tmp_path / "pages" / "run #2?.html", lead.federation.path, session, command="silograph …")


def add_first_round(lead):
    """As the exact method ends it: no bound is known yet."""
    with History(lead.run().history) as history:
        history.add_round("learn", {"round": 1, "gap": float("inf"), "silos": 3}, **WORK)


def add_rounds(lead, first, last, gap=0.1):
    with History(lead.run().history) as history:
        for number in range(first, last + 1):
            history.add_round("learn", {"round": number, "gap": gap * 0.5**number, "silos": 3}, **WORK)


def add_event(lead, kind, **about):
    with History(lead.run().history) as history:
        history.add_event(kind, **about)


def shown(tmp_path):
    return data_of(tmp_path / "pages" / "run #2?.html")


def test_the_page_has_what_the_desk_tells(lead, page, tmp_path):
    page.update()
    assert shown(tmp_path)["runs"] == []
    assert [site["site"] for site in shown(tmp_path)["sites"]] == list(SITES)
    lead.begin()
    add_rounds(lead, 1, 3)
    add_event(lead, "missing", site="oslo", reason="has not answered for 5 s")
    add_event(lead, "rejected", site="lima", reason="is not signed")
    add_rounds(lead, 4, 900)
    page.update()
    page.end("done", "over")
    (run,) = shown(tmp_path)["runs"]
    assert (run["run"], run["state"], run["n_rounds"]) == (RUN, "waiting", 900)
    assert run["gaps"][0] == [1, 0.05, "round 1"]
    assert run["gaps"][-1][0] == 900
    assert len(run["gaps"]) <= live.MOST_POINTS + 1
    assert run["faults"] == [3, 3]
    rejected, missing = run["events"]  # the last one first
    assert rejected["text"] == "an answer was not believed: is not signed"
    assert rejected["healed"] is None
    assert (missing["site"], missing["text"]) == ("oslo", "has not answered for 5 s")
    assert 0 <= missing["healed"] < 60
    assert shown(tmp_path)["ended"] == "over"


def test_a_gap_that_is_not_known_yet_is_none(lead, page, tmp_path):
    lead.begin()
    add_first_round(lead)
    page.update()
    (run,) = shown(tmp_path)["runs"]
    assert (run["n_rounds"], run["gap"], run["gaps"]) == (1, None, [])


def test_whatever_befalls_the_page_the_command_goes_on(page, monkeypatch):
    said = []
    monkeypatch.setattr(live, "described", lambda *_, **__: 1 / 0)
    with kept_beside(page, said.append, lambda: ("done", "over")):
        pass
    assert said == ["The page is not kept up to date: division by zero"]


def test_no_key_is_on_the_page(page, tmp_path):
    page.update()
    page.end("done", "over")
    assert "1" * 64 not in (tmp_path / "pages" / "run #2?.html").read_text()


def test_of_one_run_the_page_has_no_other(lead, session, tmp_path):
    other = "e" * 16
    lead.begin()
    lead.begin(run=other, study=STUDY.replace('"test"', '"other"'))
    LivePage(tmp_path / "pages" / "run #2?.html", lead.federation.path, session, command="…", run=other).update()
    assert [run["study"] for run in shown(tmp_path)["runs"]] == ["other"]


def test_many_runs_are_the_latest_and_the_rest_is_counted(lead, page, tmp_path):
    for number in range(live.MOST_RUNS + 3):
        lead.begin(run=f"{number:016x}")
    page.update()
    assert len(shown(tmp_path)["runs"]) == live.MOST_RUNS
    assert shown(tmp_path)["more"].startswith("… and 3 more")


def test_a_run_that_was_removed_is_not_shown_any_more(lead, page, tmp_path):
    lead.begin()
    page.update()
    lead.ask("abort", run=RUN)
    lead.ask("forget", run=RUN)
    page.update()
    page.end("done", "over")
    assert shown(tmp_path)["runs"] == []


def test_a_server_that_is_away_leaves_what_was_known(lead, page, session, tmp_path):
    lead.begin()
    page.update()
    session.away = True
    page.update()
    page.end("done", "over")
    told = shown(tmp_path)
    assert not told["server"]["answers"]
    assert told["warnings"] == ["The server does not answer: nothing listens on port 8002."]
    assert [run["run"] for run in told["runs"]] == [RUN]
    assert {site["connected"] for site in told["sites"]} == {None}


def test_a_server_that_never_answered_is_told_all_the_same(page, session, tmp_path):
    session.away = True
    page.update()
    assert (shown(tmp_path)["at"], shown(tmp_path)["runs"]) == (None, [])


def test_a_folder_is_no_page(lead, session, tmp_path):
    with pytest.raises(OutputError, match="expected the name of a file"):
        LivePage(tmp_path, lead.federation.path, session, command="…")


def test_beside_a_command_the_page_is_kept_and_a_full_disk_is_said_once(lead, page, tmp_path, monkeypatch):
    said = []
    with kept_beside(page, said.append, lambda: ("done", "The run is done.")):
        eventually(lambda: (tmp_path / "pages" / "run #2?.html").exists())
        lead.begin()
        eventually(lambda: RUN in data_file(tmp_path / "pages" / "run #2?.html").read_text())
    assert shown(tmp_path)["ended"] == "The run is done."
    assert said == []

    def full(*_):
        raise OutputError("status.data.js: no space left on device.")

    monkeypatch.setattr(live, "write_live_data", full)
    monkeypatch.setattr(live, "write_live_page", full)
    with kept_beside(page, said.append, lambda: ("", "")):
        time.sleep(0.5)
    assert said == ["The page is not kept up to date: status.data.js: no space left on device."]


def test_the_command_keeps_it_until_it_is_interrupted(lead, page, tmp_path):
    def begun():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_page(page, ask=False, begun=begun)
    assert "has ended" in shown(tmp_path)["ended"]


# --- in a browser -----------------------------------------------------------------------------------------------------


def until(look, selector, words):
    look.page.wait_for_function(
        "([selector, words]) => document.querySelector(selector).innerText.includes(words)",
        arg=[selector, words],
        timeout=20_000,
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_an_open_page_follows_the_run(browser, lead, page, session, tmp_path, width):
    lead.begin(study=STUDY.replace('"test"', '"brains"'))
    add_rounds(lead, 1, 2)
    page.update()
    look = Look(browser, tmp_path / "pages" / "run #2?.html", width=width)
    assert "brains" in look.text("#runs")
    assert "certified gap 2.5e-2" in look.text("#runs")
    assert look.text("#badge") == "live"
    add_event(lead, "missing", site="oslo", reason="has not answered for 5 s")
    page.update()
    until(look, "#runs", "oslo: has not answered for 5 s")
    add_rounds(lead, 3, 30)
    page.update()
    until(look, "#runs", "Round 30, certified gap 9.3e-11")
    assert "The run went on after" in look.text("#runs")
    assert look.page.locator("svg .fault").count() == 1
    session.away = True
    page.update()
    until(look, "#badge", "server away")
    assert "nothing listens on port 8002" in look.text("#doubts")
    session.away = False
    page.update()
    until(look, "#badge", "live")
    until(look, "#badge", "not kept up to date")  # nobody writes any more
    page.end("not followed", "The command has ended.")
    until(look, "#badge", "not followed")
    assert "The command has ended." in look.text("#when")
    wider = look.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0
    assert look.complaints == []
    assert look.outward() == []
    look.close()


def test_a_card_that_was_closed_stays_closed(browser, lead, page, tmp_path):
    lead.begin()
    page.update()
    look = Look(browser, tmp_path / "pages" / "run #2?.html")
    look.page.locator("summary").click()
    add_rounds(lead, 1, 2)
    page.update()
    eventually(lambda: "Round 2" in look.page.locator("#runs").text_content())
    assert look.page.locator("details[open]").count() == 0
    assert look.page.evaluate("document.activeElement.tagName") == "SUMMARY"  # who reads by keyboard is where they were
    look.close()


def test_alone_the_page_still_shows_how_things_were(browser, lead, page, tmp_path):
    lead.begin()
    page.update()
    data_file(tmp_path / "pages" / "run #2?.html").unlink()
    look = Look(browser, tmp_path / "pages" / "run #2?.html")
    until(look, "#badge", "alone")
    assert "run #2?.data.js is not beside this page" in look.text("#when")
    assert look.page.locator("details").count() == 1
    look.close()


def test_names_and_words_of_others_are_text(browser, lead, page, tmp_path):
    lead.begin()
    add_event(lead, "note", site="oslo", reason=EVIL)
    page.update()
    look = Look(browser, tmp_path / "pages" / "run #2?.html")
    add_event(lead, "note", site="oslo", reason=EVIL + " again")
    page.update()
    until(look, "#runs", " again")
    assert EVIL[:20] in look.text("#runs")
    assert "\u202e" not in look.page.content()
    assert look.page.title() == "silograph: test"
    assert look.page.locator("img").count() == 0
    assert look.outward() == []
    look.close()
