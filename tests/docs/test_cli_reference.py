"""The page of commands is what the code makes of them now."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_commands_is_what_the_command_line_says_now():
    made = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))
    page = made["PAGE"].read_text(encoding="utf-8")
    assert page == made["rendered"](), "run `make docs`, or python tools/cli_reference.py, and commit the page"
    assert page.count("\n#### silograph ") >= 10
