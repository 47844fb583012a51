"""`silograph site approve --page`: what a data steward reads, in a real browser, and that it approves nothing."""

import json
from dataclasses import replace
from html import escape

import pytest
from typer.testing import CliRunner

from silograph.cli.app import app
from silograph.cli.site.approve_page import approval_page
from silograph.cli.site.asked import look_at_study
from silograph.cli.site.asked_sections import METHODS
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.methods.common.registry import built_in
from testing.browser import launched
from testing.consortium import SITES, Consortium, approve, write_table

HOME = "oslo"
EVIL = "<script>document.title = 'done'</script>"
NAMES = (EVIL, "&lt;b&gt;{{made}}", "\u05d0\u05d1\u05d2", "<img src=http://elsewhere.example/x>", *"abcd")
PINNED = {site: f"{number}" * 64 for number, site in enumerate(SITES, start=1)}


@pytest.fixture(scope="module")
def browser():
    with launched() as one:
        yield one


@pytest.fixture
def consortium(tmp_path) -> Consortium:
    made = Consortium(tmp_path, approve_all=False)
    for seed, site in enumerate(SITES):
        write_table(made.table(site), seed, nodes=NAMES)
    return made


def waiting(consortium: Consortium, learn: str = "degree = 3", tables: str = "", **top: str) -> str:
    """A study that waits at a site; its SHA-256."""
    above = "".join(f"{key} = {value}\n" for key, value in top.items())
    text = f'name = "brains"\nnodes = {json.dumps(NAMES, ensure_ascii=False)}\n{above}[learn]\n{learn}\n{tables}'
    Approvals(consortium.folder / HOME).note_pending(sha_of(text.encode()), text, asked_by="<b>coordinator\u202e")
    return sha_of(text.encode())


def command(consortium: Consortium, sha: str, *options: str, code: int = 0) -> str:
    words = ["site", "approve", sha, "--folder", str(consortium.folder / HOME), *options]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def page_of(consortium: Consortium, sha: str) -> str:
    out = consortium.folder / "approve.html"
    command(consortium, sha, "--page", str(out))
    return out.read_text("utf-8")


def test_the_page_approves_nothing_and_writes_nothing_into_the_log(consortium):
    sha, home = waiting(consortium), consortium.folder / HOME
    said = command(consortium, sha, "--page", str(consortium.folder / "pages" / "approve.html"))
    assert "Nothing was approved. To approve it: silograph site approve" in said
    assert " --folder " in said
    assert "Approve it?" not in said
    assert Approvals(home).approved() == []
    assert [one.sha for one in Approvals(home).pending()] == [sha]
    assert not (home / "audit.jsonl").exists()
    assert (consortium.folder / "pages" / "approve.html").is_file()


@pytest.mark.parametrize("option", ["--yes", "--revoke", "--reject", "--reject-all", "--despite-difference"])
def test_what_would_change_something_does_not_go_with_a_page(consortium, option):
    sha = waiting(consortium)
    assert "approves nothing" in command(consortium, sha, "--page", str(consortium.folder / "a.html"), option, code=2)
    assert [one.sha for one in Approvals(consortium.folder / HOME).pending()] == [sha]
    assert not (consortium.folder / "a.html").exists()


def test_the_page_says_all_that_the_prompt_says(consortium):
    sha = waiting(consortium, sites=json.dumps(SITES))
    page = page_of(consortium, sha)
    asked = look_at_study(consortium.folder / HOME, sha)
    said = [*asked.leaves(), *asked.table(), *asked.spends(), *asked.terms(), *asked.difference(), *asked.twice()]
    words = [word for one in said for word in (one if isinstance(one, tuple) else (one,))]
    assert len(words) > 40
    for word in words:
        assert escape(word.strip()) in page, word
    assert page.count(sha) == 3
    assert f"silograph site approve {sha} --folder" in page


def test_every_method_has_words_for_people_who_do_not_compute():
    assert set(METHODS) == set(built_in())


def test_masks_noise_and_keys_are_told_in_words(consortium):
    keys = "".join(f'{site} = "{key}"\n' for site, key in PINNED.items())
    privacy = f'[privacy]\nsums = "masked"\nepsilon = 1.0\ndelta = 1e-3\nmin_samples = 20\n[keys]\n{keys}'
    sites = {"sites": json.dumps(SITES), "share_graphs": "false"}
    page = page_of(consortium, waiting(consortium, 'method = "oneshot"\ndegree = 3', privacy, **sites))
    assert "masked: the coordinator learns the sum over all sites, and not this site&#x27;s part of it" in page
    assert "ε = 1, δ = 0.001: another row in the place of one makes a result at most 2.72 times as likely" in page
    assert "Nothing: answers with noise hide every row" in page
    assert "NOT pinned. Ask lima by telephone" in page
    assert "Spends: epsilon = 1, delta = 0.001 for one row" in page


def test_what_is_in_the_way_of_an_approval_is_on_the_page(consortium):
    home = consortium.folder / HOME
    settings = home / "site.toml"
    settings.write_text(settings.read_text().replace("# epsilon_total = 1.0", "epsilon_total = 1.0"))
    page = page_of(consortium, waiting(consortium))
    assert "NOT as it is: the study has no epsilon; with epsilon_total = 1, site.toml allows none without" in page


def test_what_changed_since_the_last_approval_is_marked(consortium):
    home = consortium.folder / HOME
    assert "No other study is approved to compare it with." in page_of(consortium, waiting(consortium, "degree = 3"))
    approve(home, (home / "pending" / f"{waiting(consortium)}.toml").read_bytes())
    page = page_of(consortium, waiting(consortium, "degree = 4"))
    assert "<span class='went'>-degree = 3</span>" in page
    assert "<span class='came'>+degree = 4</span>" in page
    assert ">not approved</span>" in page
    assert ">approved</span>" in page_of(consortium, sha_of((next((home / "approved").iterdir())).read_bytes()))


@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser_names_of_others_are_text_and_nothing_is_asked_of_a_network(browser, consortium, width):
    sha = waiting(consortium)
    page_of(consortium, sha)
    context = browser.new_context(viewport={"width": width, "height": 900})
    page, complaints, requests = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((consortium.folder / "approve.html").as_uri())
    text = page.inner_text("body")
    for name in NAMES:
        assert name in text
    assert "Asked by <b>coordinator\\u202e at" in text
    assert page.title() == "silograph: Study brains"
    assert page.locator("script, img, b, [onerror]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("h2").all_inner_texts()[0] == "In short"
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_nothing_is_cut_off_where_it_is_printed(browser, consortium):
    page_of(consortium, waiting(consortium))
    page = browser.new_page(viewport={"width": 700, "height": 990})  # a sheet of A4
    page.emulate_media(media="print")
    page.goto((consortium.folder / "approve.html").as_uri())
    assert page.evaluate("[...document.querySelectorAll('pre, td')].every((one) => one.scrollWidth <= one.clientWidth)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    page.close()


def test_a_name_that_turns_letters_about_is_shown_by_its_code(consortium):
    """Such a study is not kept; should one come another way, the page shows what is in it."""
    asked = look_at_study(consortium.folder / HOME, waiting(consortium))
    study = replace(asked.study, text=b'name = "\xe2\x80\xae<i>"')
    page = approval_page(replace(asked, study=study))
    assert "name = &quot;\\u202e&lt;i&gt;&quot;" in page
    assert "\u202e" not in page
