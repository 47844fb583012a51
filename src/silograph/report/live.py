"""A page that stays up to date without a server: one HTML file, and a file of data beside it, which it reads again.

    status.html       styles, script, and the data as they were when it was written: alone, it still opens
    status.data.js    the data as they are now

A browser lets a page from a disk read no file beside it but a script, so the data are a call. They are JSON in which no
letter is markup; all that others have named or said is put on the page as text.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from silograph._util.files import make_folder, write_text
from silograph._util.terminal import visible
from silograph.errors import OutputError
from silograph.report.page import as_json, asset, fill_in, script_hash, style


def data_file(page: Path) -> Path:
    """The file beside a page that has its data."""
    return page.with_name(f"{page.stem}.data.js")


def check_page(page: Path) -> None:
    """Raise unless a page can be written there."""
    if page.is_dir():
        raise OutputError(f"{page}: expected the name of a file, got a folder. Name the page: {page / 'status.html'}")
    make_folder(page.absolute().parent)


def write_live_page(page: Path, data: Mapping[str, Any]) -> None:
    """Write the page itself, with the data inside and beside it."""
    script, shown = asset("live.js"), as_text(data)
    parts = {
        # 'self' where a web server serves the folder; a file has no such origin
        "{{policy}}": f"default-src 'none'; script-src {script_hash(script)} 'self' file:; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        "{{style}}": style(),
        "{{title}}": escape(str(shown["title"])),
        "{{beside}}": escape(data_file(page).name, quote=True),
        "{{data}}": as_json(shown),
        "{{script}}": f"<script>{script}</script>",
    }
    write_live_data(page, data)
    write_text(page, fill_in(asset("live.html"), parts))


def write_live_data(page: Path, data: Mapping[str, Any]) -> None:
    """Write the data beside the page; whoever looks at it sees them within seconds."""
    write_text(data_file(page), f"silographLive({as_json(as_text(data))});\n")


def as_text(data: Any) -> Any:
    """The data with every text as it can be seen: none turns about what stands beside it, or hides a letter."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, Mapping):
        return {name: as_text(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_text(value) for value in data]
    return data
