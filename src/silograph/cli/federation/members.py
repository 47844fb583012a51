"""The commands that change who is of a federation, and for how long: `renew`, `revoke`, `add-site`, `remove-site`."""

from pathlib import Path
from typing import Annotated

import typer

from silograph.cli.folders import InFederation, federation_folder
from silograph.cli.output import guard, need_nvflare, say
from silograph.federation.certificates import certificate_ends
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import FederationFolder
from silograph.federation.names import OWN_NAMES

app = typer.Typer()
ELSEWHERE = "If the server is on another machine, bring it the folder sites/."

RENEW_HELP = """Sign a key once more, for three years from now: a site's, the server's, the lead's or the conductor's.

Nothing but the certificate changes. Needs the root key, ca/. Of a site, its first request was kept: it is asked for
nothing, and gets SITE.signed.zip. The root certificate lives for ten years, and cannot be renewed.
"""


@app.command(help=RENEW_HELP)
@guard()
def renew(
    who: Annotated[str, typer.Argument(metavar="SITE|server|lead|conductor", help="Whose certificate.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write for a site. Default: SITE.signed.zip in this folder.")
    ] = None,
    folder: InFederation = None,
) -> None:
    """Renew a certificate."""
    need_nvflare()
    from silograph.federation.nvflare.authority import renew_own, renew_site
    from silograph.federation.nvflare.hosting import running

    home = federation_folder(folder)
    if who in OWN_NAMES:
        made = renew_own(home, who)
        say(f"The {who}'s certificate ends on {certificate_ends(made):%Y-%m-%d} now; its key is as before.")
        if who == "server" and running(home):
            say("The server takes it when it is started anew: Ctrl-C, then silograph federation start. A run under way")
            say("goes on from its last round, and until then the old certificate holds to its end.")
        say(f"If the server is on another machine, copy it there: {home / made.relative_to(home.resolve())}")
    else:
        made = renew_site(home, who, out or Path(f"{who}.signed.zip"))
        ends = certificate_ends(FederationFolder(home).certificate(who))
        say(f"Send to {who}: {made.name}. Its certificate ends on {ends:%Y-%m-%d}; its key is as before.")
        say(f"There: silograph site renew {made.name}")


REVOKE_HELP = """Believe a site's key no more, because it was stolen or lost, or the site must not take part.

It holds from the next message on: the server drops the site's connection and takes none with this key again, and no
answer signed by it. Runs under way go on as their study says. It is not undone; the site may make a new key, to be
signed with [bold]silograph federation approve --force[/bold]. Where ca/ is on another machine, revoke there too.
"""


@app.command(help=REVOKE_HELP)
@guard()
def revoke(site: Annotated[str, typer.Argument(help="The site.")], folder: InFederation = None) -> None:
    """Revoke a key."""
    need_nvflare()
    from silograph.federation.members import revoke_key

    key = revoke_key(FederationFolder(federation_folder(folder)), site)
    say(f"The key of {site} is believed no more, from the next message on:")
    say(f"  {shown_fingerprint(key)}")
    say(ELSEWHERE)
    say("Whoever has the key may still pose as this site towards the other sites, if the coordinator helps: tell their")
    say(f"people, by a second way, to take the pin away: silograph site pin {site} --remove")
    say("For a new key, the site moves key/ and kit/ away and asks anew: silograph site request. Then, here:")
    say(f"  silograph federation approve {site}.request.zip --force")


ADD_HELP = """Invite further sites. Those that are there go on as they are, and need no new invitation.

A site takes part with one that joined later only if its own people agree: by pinning the new site's key, or by
approving a study that names it.
"""


@app.command("add-site", help=ADD_HELP)
@guard()
def add_site(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The new sites' names.")],
    folder: InFederation = None,
) -> None:
    """Add sites."""
    need_nvflare()
    from silograph.federation.members import add_sites

    federation = FederationFolder(federation_folder(folder))
    invitation = add_sites(federation, names)
    say(f"The sites of {invitation.name}: {', '.join(invitation.sites)}.")
    say("Send to the new ones alone, and tell them the fingerprint of the root certificate by telephone:")
    say(f"  {federation.invitation(invitation.name)}")
    say(f"  {invitation.shown_fingerprint()}")
    say(f"There: silograph site request {invitation.name}.invite --site {'|'.join(names)}")
    say("Here: silograph federation approve SITE.request.zip. There again: silograph site join, and start.")
    say(f"At the other sites, once you have each other's fingerprints: silograph site pin {names[0]} FINGERPRINT --new")


@app.command("remove-site", help="Take sites off the federation's list, and revoke their keys. Nothing is sent.")
@guard()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The sites that leave.")],
    folder: InFederation = None,
) -> None:
    """Remove sites."""
    need_nvflare()
    from silograph.federation.members import remove_site

    federation = FederationFolder(federation_folder(folder))
    for name in names:
        invitation = remove_site(federation, name)
        say(f"{name} is no site of {invitation.name} any more, and its key is believed no more.")
    say(f"The sites left: {', '.join(invitation.sites)}. Studies that name others have to be written anew.")
    say(f"If the server is on another machine, bring it sites/ and {federation.about.name}.")
