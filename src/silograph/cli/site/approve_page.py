"""A study that waits, as a page for those who decide: to be read, printed and kept. It approves nothing.

The page says what the prompt says, and has neither scripts nor pictures. What others wrote is text on it.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from pathlib import Path

from silograph._util.files import make_folder, write_text
from silograph._util.terminal import lines_of, visible
from silograph.cli.site.asked import AskedStudy
from silograph.cli.site.asked_sections import Listing, Said
from silograph.errors import OutputError
from silograph.federation.site.contact import shown_minute
from silograph.report.page import asset, fill_in, style

LOUD = re.compile(r"\b[A-Z]{5,}\b")  # as the prompt says what nobody should miss
CHANGED = {"+": " class='came'", "-": " class='went'"}


def write_approval_page(asked: AskedStudy, out: Path) -> Path:
    """Write the page of a study."""
    if out.is_dir():
        raise OutputError(f"{out}: expected the name of a file, got a folder. Name the page: {out / 'approve.html'}")
    make_folder(out.absolute().parent)
    return write_text(out, approval_page(asked))


def approval_page(asked: AskedStudy) -> str:
    """The page as text."""
    study, settings = asked.study, asked.settings
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    sections: list[tuple[str, str, Sequence[Said]]] = [
        ("Look twice", "doubts", asked.twice()),
        ("In short", "", asked.in_short()),
        ("What leaves this site", "", asked.leaves()),
        ("What it adds to the ledger of your data", "", [_ledger(asked), *asked.table()]),
        ("What it adds to your budget", "", asked.spends()),
        ("Whose keys it names", "", asked.keys()),
        ("What changed since the last approval", "", asked.difference()),
        ("Its terms", "", asked.terms()),
        ("The study, whole", "", [Listing(study.text.decode())]),
        ("To approve it, or not", "", _how(asked)),
    ]
    parts = {
        "{{style}}": style(),
        "{{title}}": _text(f"Study {study.name}"),
        "{{subtitle}}": _text(f"Asks {settings.name}, in {settings.federation}. {_asked_by(asked)}"),
        "{{badge}}": _state(asked),
        "{{sections}}": "\n".join(_section(title, name, said) for title, name, said in sections if said),
        "{{made}}": _text(f"Made by silograph, {now}, from this site's data and limits as they were then."),
    }
    return fill_in(asset("approve.html"), parts)


def _state(asked: AskedStudy) -> str:
    approval = asked.approvals.get(asked.study.sha256)
    if approval is None:
        return "not approved"
    return "approved" if approval.table == asked.data.version else "approved for another version of the data"


def _asked_by(asked: AskedStudy) -> str:
    waits = (one for one in asked.approvals.pending() if one.sha == asked.study.sha256)
    return next(
        (f"Asked by {one.asked_by} at {shown_minute(one.when)}." for one in waits), "Nobody has asked for it yet."
    )


def _ledger(asked: AskedStudy) -> str:
    if asked.study.settings.privacy.noisy:
        return "Nothing: answers with noise hide every row, whatever they are compared with. The budget counts them."
    return (
        "With the first answer, this version of the data is written down as answered for. Later versions are held "
        f"against it: one that differs by few {asked.comparison.unit}s is refused, as the difference would show them."
    )


def _how(asked: AskedStudy) -> list[Said]:
    sha, hindrance = asked.study.sha256, asked.hindrance(despite=False)
    command = f"silograph site approve {sha} --folder {shlex.quote(str(asked.home))}"
    return [
        *([] if hindrance is None else [f"NOT as it is: {hindrance}"]),
        "This page approves nothing. What counts is what the command shows and asks, at this site. Compare all 64 "
        "digits of the SHA-256: a study that differs by one byte has another.",
        ("SHA-256", sha),
        "To approve it:",
        Listing(command),
        "To let it wait no more:",
        Listing(f"{command} --reject"),
    ]


def _section(title: str, name: str, said: Sequence[Said]) -> str:
    named = f" id='{name}'" if name else ""
    return f"<section{named}>\n<h2>{escape(title)}</h2>\n{''.join(_blocks(said))}\n</section>"


def _blocks(said: Sequence[Said]) -> Iterator[str]:
    for kind, some in groupby(said, type):
        blocks = "".join(map(_block, some))
        yield f"<table><tbody>{blocks}</tbody></table>" if kind is tuple else blocks


def _block(said: Said) -> str:
    if isinstance(said, tuple):
        return f"<tr><th scope='row'>{_text(said[0])}</th><td>{_text(said[1])}</td></tr>"
    if isinstance(said, Listing):
        kinds = CHANGED if said.difference else {}
        lines = (f"<span{kinds.get(line[:1], '')}>{_text(line)}</span>" for line in lines_of(said.text))
        return f"<pre>{''.join(lines)}</pre>"
    if said.endswith(":"):
        return f"<h3>{_text(said)}</h3>"
    kind = " class='sub'" if said.startswith("  ") else " class='loud'" if LOUD.search(said) else ""
    return f"<p{kind}>{_text(said.strip())}</p>"


def _text(text: str) -> str:
    """What anybody wrote, as text: nothing in it is markup, and what cannot be seen is shown as its code."""
    return escape(visible(text))
