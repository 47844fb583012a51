"""Which federation or site a command means: the folder named, the present one, or the only one below it."""

from __future__ import annotations

from pathlib import Path

from silograph.errors import ParameterError

FEDERATION, SITE = "server/startup/fed_server.json", "federation.invite"


def federation_folder(given: Path | None) -> Path:
    """The folder that `silograph federation new` made."""
    return _found(given, FEDERATION, "federation", "silograph federation new")


def site_folder(given: Path | None, *, named: Path | None = None) -> Path:
    """The folder that `silograph site request` made; if none is given, the one `named` like the site, if it is here."""
    if given is None and named is not None and (named / SITE).exists():
        return named
    return _found(given, SITE, "site", "silograph site request")


def _found(given: Path | None, marker: str, what: str, maker: str) -> Path:
    if given is not None:
        if not (given / marker).exists():
            raise ParameterError(f"{given}: is no {what}'s folder. Name the one that `{maker}` made.")
        return given
    here = Path()
    if (here / marker).exists():
        return here
    below = sorted(path for path in here.iterdir() if (path / marker).exists())
    if len(below) == 1:
        return below[0]
    if not below:
        raise ParameterError(f"Found no {what}'s folder here. Go to where `{maker}` made it, or name it: --folder.")
    names = ", ".join(str(path) for path in below)
    raise ParameterError(f"Found several {what}s' folders here ({names}). Name one: --folder.")
