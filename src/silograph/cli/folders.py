"""Which federation or site a command means: the folder named, the present one, or the only one below it."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from silograph.errors import ParameterError
from silograph.federation.folders import FederationFolder, SiteFolder

Systemd = Annotated[
    bool, typer.Option("--systemd", help="Print a systemd unit that does this at every boot, and exit.")
]

InFederation = Annotated[
    Path | None, typer.Option(help="The federation's folder. Default: this folder, or the only one below it.")
]
InSite = Annotated[Path | None, typer.Option(help="The site's folder. Default: this folder, or the only one below it.")]


def federation_folder(given: Path | None) -> Path:
    """The folder that `silograph federation new` made."""
    return _find(given, _is_federation, "federation", "silograph federation new NAME --sites A B C")


def site_folder(given: Path | None, *, named: Path | None = None) -> Path:
    """The folder that `silograph site request` made; if none is given, the one `named` like the site, if it is here."""
    if given is None and named is not None and _is_site(named):
        return named
    return _find(given, _is_site, "site", "silograph site request NAME.invite --site SITE")


def joined_folder(given: Path | None) -> Path:
    """The folder of a site that has joined; raises with what to do first where it has not."""
    from silograph.federation.site.pins import Pins

    home = site_folder(given)
    if SiteFolder(home).settings.exists():
        return home
    option = f" --folder {shlex.quote(str(home))}"
    name = next(iter(Pins(home).own()), None)
    if name is None:
        invitation = shlex.quote(str(SiteFolder(home).invitation))
        ask = f"silograph site request {invitation} --site NAME{option}"
        raise ParameterError(f"{home}: has no key yet, and has not joined. Ask first: {ask}")
    raise ParameterError(
        f"{home}: has not joined yet (no {SiteFolder(home).settings.name}). Join first, with what the coordinator sent "
        f"back: silograph site join {name}.signed.zip --data YOUR-TABLE-OR-FOLDER{option}"
    )


def folder_option(home: Path) -> str:
    """What a command on this folder needs that is typed here, with a space before it; nothing in the folder itself."""
    return "" if home.resolve() == Path.cwd().resolve() else f" --folder {shlex.quote(str(home))}"


def _is_federation(folder: Path) -> bool:
    return FederationFolder(folder).about.exists()


def _is_site(folder: Path) -> bool:
    return SiteFolder(folder).invitation.exists()


def _find(given: Path | None, fits: Callable[[Path], bool], what: str, maker: str) -> Path:
    if given is not None:
        if not fits(given):
            raise ParameterError(f"{given}: is no {what}'s folder. Name the one that this made: {maker}")
        return given
    here = Path()
    if fits(here):
        return here
    below = sorted(path for path in here.iterdir() if fits(path))
    if len(below) == 1:
        return below[0]
    if not below:
        raise ParameterError(
            f"Found no {what}'s folder here. Make one first: {maker}; or go to where it is, or name it: --folder."
        )
    names = ", ".join(str(path) for path in below)
    raise ParameterError(f"Found several {what}s' folders here ({names}). Name one: --folder.")
