"""The command `silograph site renew`."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.folders import InSite, site_folder
from silograph.cli.output import guard, need_nvflare
from silograph.cli.site.account import say
from silograph.errors import SilosError
from silograph.federation.certificates import certificate_ends
from silograph.federation.folders import SiteFolder

app = typer.Typer()

RENEW_HELP = """Install a new certificate that the coordinator signed for this site's key.

Nothing else changes: data, limits, pins, approvals, log and results stay, and the site may run meanwhile. If the site
has made a new key because the old one was lost, stolen or revoked, installs that.

With a newer invitation, [bold]NAME.invite[/bold], takes the server's address from it: the server has moved, or has
another port. Sites that the invitation has more are not taken: pin them with [bold]silograph site pin --new[/bold].
"""


@app.command(help=RENEW_HELP)
@guard()
def renew(
    signed: Annotated[
        Path, typer.Argument(metavar="FILE", help="SITE.signed.zip from the coordinator; or a newer NAME.invite.")
    ],
    folder: InSite = None,
) -> None:
    """Renew this site's certificate, or the server's address."""
    need_nvflare()
    from silograph.cli.site.pin import own_key
    from silograph.federation.nvflare.hosting import running
    from silograph.federation.nvflare.kits import renew_kit, signed_for, site_invitation

    if signed.suffix == ".invite":
        _renew_address(site_folder(folder), signed)
        return
    home = site_folder(folder) if folder else site_folder(None, named=Path(signed_for(signed)))
    place = SiteFolder(home)
    if not place.settings.exists():
        raise SilosError(f"{home}: has not joined yet. Install the answer with: silograph site join {signed.name}")
    same = renew_kit(home, signed, site_invitation(home))
    say(f"Renewed: the certificate ends on {certificate_ends(place.kit.certificate):%Y-%m-%d}. Settings are as before.")
    if not same:
        say("It is for a new key. The other sites pin it with --replace, once you have told them.", *own_key(home))
    elif running(home):
        say("The site takes it when it is started anew; until then it uses the old one. Ctrl-C, silograph site start.")


def _renew_address(home: Path, invitation: Path) -> None:
    from silograph.federation.nvflare.hosting import running
    from silograph.federation.site.address import address_of, take_address

    # An invitation that lies in the site's folder is meant also from outside
    given = invitation if invitation.exists() or invitation.is_absolute() else home / invitation
    say(f"The server is at {address_of(take_address(SiteFolder(home), given))}, here and in the kit.")
    if running(home):
        say("The site goes there when it is started anew: Ctrl-C, silograph site start.")
