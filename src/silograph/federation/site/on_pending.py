"""The program that a site's people want to be called when a study begins to wait, such as one that sends a mail.

It gets a text for people on its standard input, and the same as data in its environment. What others wrote (the
study's name, who asked) is in neither place read as a command: no shell is started, and no argument is added.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence

from silograph._util.terminal import visible
from silograph.federation.folders import SiteFolder
from silograph.federation.site.approvals import Pending

SECONDS = 60.0  # that it may take
LONGEST_OUTPUT = 300  # characters of what it prints that are told
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


def call(
    program: Sequence[str], folder: SiteFolder, study: Pending, name: str, say: Callable[[str], None],
    *, seconds: float = SECONDS,
) -> None:  # fmt: skip
    """Call it and wait for its end; say if it fails, and no more."""
    variables = _variables(folder, study, name)
    kept = {one: os.environ[one] for one in KEPT_VARIABLES if one in os.environ}
    try:
        process = subprocess.Popen(
            list(program), cwd=folder.path, env=kept | variables, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        say(f"on_pending in site.toml: {program[0]} cannot be called ({error.strerror}). Nobody was told of the study.")
        return
    try:
        printed, _ = process.communicate(_text(variables).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with all that it started
        process.communicate()
        say(f"on_pending in site.toml: {program[0]} took longer than {seconds:g} s and was ended.")
        return
    if process.returncode:
        last = printed.decode("utf-8", "replace").strip()[-LONGEST_OUTPUT:]
        say(f"on_pending in site.toml: {program[0]} failed with code {process.returncode}: {last or 'it said nothing'}")


def _variables(folder: SiteFolder, study: Pending, name: str) -> dict[str, str]:
    return {
        "SILOGRAPH_SITE_FOLDER": str(folder.path),
        "SILOGRAPH_STUDY_SHA256": study.sha,
        "SILOGRAPH_STUDY_NAME": visible(name),
        "SILOGRAPH_STUDY_FILE": str(study.path),
        "SILOGRAPH_ASKED_BY": visible(study.asked_by),
        "SILOGRAPH_WAITS_SINCE": visible(study.when),
    }


def _text(variables: dict[str, str]) -> str:
    """For people. No line begins with what others wrote: some mail programs take such lines for commands."""
    return (
        f"A study waits for approval at the site in {variables['SILOGRAPH_SITE_FOLDER']}.\n\n"
        f"Study: {variables['SILOGRAPH_STUDY_NAME']}\n"
        f"SHA-256: {variables['SILOGRAPH_STUDY_SHA256']}\n"
        f"Asked for by: {variables['SILOGRAPH_ASKED_BY']}, {variables['SILOGRAPH_WAITS_SINCE']} (UTC)\n"
        f"Its file: {variables['SILOGRAPH_STUDY_FILE']}\n\n"
        "Read it, then approve or reject it:\n"
        f"silograph site approve {variables['SILOGRAPH_STUDY_SHA256']}\n"
    )
