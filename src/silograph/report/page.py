"""One HTML file that needs nothing else: styles, scripts and data inside, and a policy that forbids any request.

Data travel as JSON that cannot end its own element, and scripts run only if their hash is in the policy: whatever a
node or a silo is called, it stays text.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from silograph._util.files import make_folder, write_text
from silograph.errors import OutputError
from silograph.report.brain import outlines, write_spatial
from silograph.report.coordinates import read_coordinates
from silograph.report.layout import layout_of
from silograph.report.measures import on_all_nodes
from silograph.report.palette import css_variables
from silograph.report.payload import payload
from silograph.runs.reader import read_run

PAGE = "report.html"
LIBRARIES = ("vendor/cytoscape.min.js", "vendor/plotly-cartesian.min.js")
OURS = ("data.js", "stability.js", "words.js", "graph_view.js", "graphs.js", "charts.js", "table.js", "main.js")
# What a browser takes for the end of a script or the start of a comment, and two line ends that older scripts trip over
UNSAFE = {letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def write_report(
    run_folder: Path, out: Path | None = None, *, coordinates: Path | None = None, title: str | None = None
) -> Path:
    """Write a run's page (default: report.html in its folder) and return where it is.

    `coordinates` is a CSV file with the columns name, x, y and perhaps z. With z, places are in MNI space: the page
    gets views of the brain and, where nilearn is installed, a second file beside it that can be turned in space.
    """
    run = on_all_nodes(read_run(run_folder))
    places = None if coordinates is None else read_coordinates(coordinates, run.names)
    out = run_folder / PAGE if out is None else out
    if out.is_dir():
        raise OutputError(f"{out}: expected the name of a file, got a folder. Name the page: {out / PAGE}")
    make_folder(out.absolute().parent)
    layout = layout_of(run, places)
    spatial = None if layout.space is None else write_spatial(run.main, layout.space, out)
    data = payload(run, layout, title=title or f"Run {run.name}", spatial=None if spatial is None else spatial.name)
    if layout.space is not None:
        data["outlines"] = outlines()
    return write_text(out, page(data))


def page(data: dict[str, Any]) -> str:
    """The whole page as text."""
    scripts = [*map(asset, LIBRARIES), "\n".join(map(asset, OURS))]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(script_hash, scripts))}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "{{policy}}": policy,
        "{{style}}": style(),
        "{{notice}}": notice() if "outlines" in data else "",
        "{{scripts}}": "\n".join(f"<script>{script}</script>" for script in scripts),
        "{{data}}": as_json(data),
    }
    return fill_in(asset("page.html"), parts)


def fill_in(whole: str, parts: Mapping[str, str]) -> str:
    """A page with the parts at their marks, wherever these stand; a mark inside a part stays text."""
    marks = re.compile("|".join(map(re.escape, parts)))
    return marks.sub(lambda found: parts[found[0]], whole)


def style() -> str:
    """The style of all pages, with its colours."""
    return asset("page.css").replace("{{colours}}", css_variables())


def notice() -> str:
    """What the licence of nilearn's outlines asks of every copy of them."""
    text = html.escape(asset("vendor/nilearn.LICENSE"))
    return f"<details><summary>Outlines of the head: nilearn, BSD 3-Clause</summary><pre>{text}</pre></details>"


def as_json(data: Any) -> str:
    """JSON that is safe inside an HTML element: no letter of it is markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter, written in UNSAFE.items():
        text = text.replace(letter, written)
    return text


def asset(name: str) -> str:
    """A file that comes with this package."""
    text = files("silograph.report").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")  # as browsers do before they hash it


def script_hash(script: str) -> str:
    """By which a page's policy lets this script run, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
