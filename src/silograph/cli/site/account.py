"""Who uses the commands of a site, and how they talk to them."""

import getpass
import os
from functools import partial

import typer

from silograph._util.naming import as_key
from silograph._util.terminal import visible
from silograph.cli import output

guard = partial(output.guard, way=as_key)  # what helps a site is written in its files


def user() -> str:
    """Who this process runs as; the environment counts only where the system does not know users."""
    try:
        import pwd
    except ImportError:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in many containers
        return f"user {os.getuid()}"


def say(*lines: str) -> None:
    """Print lines, none of which can do anything to a terminal."""
    for line in lines:
        typer.echo(visible(line, lines=True))
