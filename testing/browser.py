"""A real browser for the tests: Debian's chromium, driven by Playwright. Neither is fetched from here."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

HOW = "pip install playwright, and a Chromium: on Debian, apt-get install chromium (`make browser` does both)"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--disable-extensions", "--no-first-run"]


def executable():
    """Where a Chromium is: where CHROMIUM says, or on the path."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found if found and Path(found).exists() else None


@contextmanager
def launched():
    """A browser without a window; the test is skipped, with what to do, where there is none."""
    driver = pytest.importorskip("playwright.sync_api", reason=f"no Playwright: {HOW}")
    path = executable()
    if path is None:
        pytest.skip(f"no Chromium: {HOW}")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


class Look:
    """An open page, and what went wrong on it."""

    def __init__(self, browser, page_file, *, width=1280, height=900):
        self.context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        session = self.context.new_cdp_session(self.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(page_file.resolve().as_uri(), timeout=60_000)
        told = session.send("Performance.getMetrics")["metrics"]
        self.work = next(one["value"] for one in told if one["name"] == "TaskDuration")  # seconds of its main thread
        self.page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=60_000)

    def text(self, selector):
        """What an element says."""
        return self.page.locator(selector).inner_text()

    def outward(self):
        """Requests that are not for the file itself."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]

    def close(self):
        """Leave the page."""
        self.context.close()
