"""The commands `silograph site …`, for a site's engineer."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from silograph._util.naming import as_join_option
from silograph.cli.folders import InSite as Folder
from silograph.cli.folders import Systemd, joined_folder, site_folder
from silograph.cli.output import PIPE_WIDTH, need_nvflare, warn
from silograph.cli.site import renew
from silograph.cli.site.account import guard, say
from silograph.errors import ParameterError, SilographError
from silograph.federation.certificates import site_warnings
from silograph.federation.folders import SiteFolder

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Take part in a federation: your signals stay here. See [bold]silograph federation[/bold] for the other side.",
)
app.add_typer(renew.app)


@app.command(
    help="Make a key for this site and a request to join. Only the request leaves; send it to the coordinator."
)
@guard()
def request(
    invitation: Annotated[Path, typer.Argument(help="The invitation from the coordinator, NAME.invite.")],
    site: Annotated[str, typer.Option(help="Which of the invited sites this is.")],
    folder: Annotated[Path | None, typer.Option(help="Folder to make for this site. Default: the site's name.")] = None,
) -> None:
    """Make key and request."""
    from silograph.federation.invitation import read_invitation

    need_nvflare()
    from silograph.cli.site.pin import own_key
    from silograph.federation.nvflare.kits import make_request

    invited = read_invitation(invitation)
    home = folder or Path(site)
    made = make_request(home, invited, site)
    data = "" if SiteFolder(home).settings.exists() else " --data YOUR-TABLE-OR-FOLDER"
    say(
        f"Federation {invited.name}, server {invited.server}:{invited.port}, sites {', '.join(invited.sites)}.",
        "Root certificate (compare it with what the coordinator tells you by telephone):",
        f"  {invited.shown_fingerprint()}",
        f"The private key is in {SiteFolder(home).key}/ and stays there.",
        *own_key(home),
        f"Send to the coordinator: {_near(made)}",
        "Then, with what comes back: "
        f"silograph site {'join' if data else 'renew'} {site}.signed.zip{data}{_option(home, site)}",
    )


JOIN_HELP = """Install what the coordinator signed, check the data, and say what will and will not leave this site.

A table has one row per sample and one column per node (CSV, TSV, .1D, .npy, .npz, Parquet, Feather or Excel). It is not
copied: its path is kept in site.toml, this site's own file, together with the limits. Both never leave. With a folder
of tables, or several, each table is a silo of its own, such as a patient, and what leaves is the sum over all of them.
"""


@app.command(help=JOIN_HELP)
@guard(way=as_join_option)
def join(
    signed: Annotated[Path, typer.Argument(help="SITE.signed.zip from the coordinator.")],
    data: Annotated[
        list[Path],
        typer.Option(help='This site\'s table of signals; or a folder or "pattern" of several. May be repeated.'),
    ],
    folder: Folder = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column that is not a node; may be repeated.")] = None,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz file holds the signals.")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row names the nodes.")
    ] = None,
    min_samples: Annotated[
        int | None, typer.Option(help="Least number of samples to take part with. Default: as many as nodes, and 20.")
    ] = None,
    min_tables: Annotated[int, typer.Option(help="Of several tables: least number to take part with.")] = 5,
    max_rounds: Annotated[int, typer.Option(help="Most rounds that this site answers for one approved study.")] = 1000,
    keep_graph: Annotated[
        bool, typer.Option("--keep-graph", help="Never send this site's graph, even if a study asks for it.")
    ] = False,
    keep_numbers: Annotated[
        bool,
        typer.Option("--keep-numbers", help="Never tell this site's own numbers of samples, edges and contribution."),
    ] = False,
    approve_all: Annotated[
        bool, typer.Option("--approve-all", help="Answer every study within the limits, without approving it by hand.")
    ] = False,
) -> None:
    """Join."""
    need_nvflare()
    from silograph._util.kernel import telling_of_compiling
    from silograph.cli.progress import COMPILING
    from silograph.cli.site.join import join_federation
    from silograph.engine.warm_up import warm_up
    from silograph.federation.nvflare.kits import signed_for

    home = site_folder(folder) if folder else site_folder(None, named=Path(signed_for(signed)))
    limits = {
        "drop": tuple(drop or ()),
        "key": key,
        "header": header,
        "min_samples": min_samples,
        "min_tables": min_tables,
        "max_rounds": max_rounds,
        "share_graph": not keep_graph,
        "report": not keep_numbers,
        "approve_all": approve_all,
    }
    lines = join_federation(home, signed, data, limits)
    with telling_of_compiling(lambda: typer.echo(COMPILING, err=True)):
        warm_up()  # so that the first study need not wait
    say(*lines)


@app.command(help="Connect to the federation and answer approved studies, until Ctrl-C. Restarts what dies.")
@guard("the site has ended; start it again with: silograph site start")
def start(folder: Folder = None, systemd: Systemd = False) -> None:
    """Host the site."""
    need_nvflare()
    from silograph.cli.site.pin import not_pinned
    from silograph.federation.nvflare.hosting import host_site
    from silograph.federation.nvflare.systemd import systemd_unit
    from silograph.federation.site.settings import read_site

    home = joined_folder(folder)
    read_site(home)
    if systemd:
        typer.echo(systemd_unit("site", home))
    else:
        say(*not_pinned(home))
        for text in site_warnings(home):
            warn(text)
        host_site(home, say=typer.echo)


STATUS_HELP = """How this site stands: connected or not, the last run, studies that wait, what is left of the budget.

Nobody is asked. Only where the site is not connected, the way to the server is tried once.
"""


@app.command(help=STATUS_HELP)
@guard()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False, folder: Folder = None
) -> None:
    """Show how the site stands."""
    need_nvflare()
    from silograph.cli.site.status import show_status

    show_status(joined_folder(folder), as_json=as_json)


DOCTOR_HELP = """Look for all that may keep this site from taking part, and say what to do about it.

The way to the server, the certificate and the key, the table from its first row to its last, the clock, versions, the
disk, the site's memory of what it answered, the budget, whether it is running. Exit code 1 if anything is wrong, so
that it serves as a health check; nothing leaves this site.
"""


@app.command(help=DOCTOR_HELP)
@guard()
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Do not read the rows of tables, nor all of the log.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    folder: Folder = None,
) -> None:
    """Look for what is wrong."""
    need_nvflare()
    from silograph.cli.site.status import show_diagnosis

    show_diagnosis(site_folder(folder), quick=quick, as_json=as_json)


PIN_HELP = """Pin the key of another site, so that this site masks its numbers for it and for nobody who poses as it.

The coordinator can certify any key for any name. So ask the other site's own people, by a second way such as the
telephone, for the fingerprint that this command shows there, and pin it here. Without an argument, shows this site's
own fingerprint and what is pinned.
"""


@app.command(help=PIN_HELP)
@guard()
def pin(
    site: Annotated[str | None, typer.Argument(help="The other site.")] = None,
    fingerprint: Annotated[str | None, typer.Argument(help="Of its key, whole: 5F:0C:…, colons or not.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Pin it although another key of this site was pinned before.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the pin away.")] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Pin a site that joined later than this one, and take part with it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all fingerprints as JSON.")] = False,
    folder: Folder = None,
) -> None:
    """Pin, take a pin away, or list."""
    from silograph.cli.site.pin import pin_site, show_pins, unpin_site

    home = site_folder(folder)
    if site is None:
        show_pins(home, as_json=as_json)
    elif remove:
        unpin_site(home, site)
    elif fingerprint is None:
        raise ParameterError(f"{site}: expected the fingerprint of its key too, or --remove. Ask {site} for it.")
    else:
        pin_site(home, site, fingerprint, replace=replace, new=new)


APPROVE_HELP = """Approve a study, so that this site answers its rounds for the table as it is now.

A study is known by the SHA-256 of its file, and the table by its own: whatever changes by one byte has to be approved
anew. Without an argument, shows the studies that were asked for and wait, and those approved.

With --page, writes what the command would show to a page, for those who decide and have no terminal, and approves
nothing:

  silograph site approve HASH --page approve.html
"""


@app.command(help=APPROVE_HELP)
@guard()
def approve(
    study: Annotated[
        str | None, typer.Argument(help="A study file, or the whole SHA-256 of one that waits or was approved.")
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take an approval back; it holds from the next round.")
    ] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Let the study wait no more.")] = False,
    reject_all: Annotated[bool, typer.Option("--reject-all", help="Let no study wait any more.")] = False,
    despite_difference: Annotated[
        bool,
        typer.Option(
            "--despite-difference",
            help="Approve although the table differs from one answered before by so few rows, or the sites of a masked "
            "sum from those of one before, that the difference shows them.",
        ),
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Write the study and all that it lets leave to this HTML page; approve nothing.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    folder: Folder = None,
) -> None:
    """Approve, reject, revoke, list, or write a page to read."""
    from silograph.cli.site.approve import approve_study, list_studies, reject_studies, revoke_study, write_page

    home = joined_folder(folder)
    if page is not None:
        if study is None or revoke or reject or reject_all or yes or despite_difference:
            raise ParameterError(
                "--page: approves nothing. Name one study by its hash or file, and leave out the rest."
            )
        write_page(home, study, page)
    elif reject_all:
        reject_studies(home, None)
    elif study is None:
        list_studies(home)
    elif revoke:
        revoke_study(home, study)
    elif reject:
        reject_studies(home, study)
    else:
        approve_study(home, study, yes=yes, despite=despite_difference)


STABILITY_HELP = """How stable the edges of your own graphs are: how often half of your rows bring each forth again.

After a run has ended, your graphs are learned anew from half of your rows, and from the other half, and so on, beside
the run's consensus, which stays as it is. Edges that most half-samples have do not hang on single rows. Nobody is asked
and nothing leaves: the results of the run in this site's folder are written anew, with a column [bold]stability[/bold]
for each edge, its mean weight and an interval that holds 90 % of half-samples. A second call replaces the first.

The data must be as they were in the run. How stable the consensus is cannot be told here: that takes the other sites'
rows.

  silograph site stability 746b8f61772df3e4.1 --half-samples 100 --stable 0.9
"""


@app.command(help=STABILITY_HELP)
@guard("the results are as they were")
def stability(
    run: Annotated[str, typer.Argument(help="The run, by the name of its folder in results/.")],
    half_samples: Annotated[
        int,
        typer.Option(help="How many half-samples to learn, an even number. More tell finer parts, and take longer."),
    ] = 50,
    stable: Annotated[
        float | None,
        typer.Option(
            metavar="PART",
            help="Also write the graphs of edges found in at least this part of half-samples, such as 0.9, to stable/.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    folder: Folder = None,
) -> None:
    """Tell how stable the site's own graphs are."""
    from silograph.cli.site.stability import show_stability

    show_stability(joined_folder(folder), run, half_samples, stable, as_json=as_json)


RESTORED_HELP = """Go on after this site's folder was restored from an older copy.

The coordinator keeps how far this site's audit log was. A site whose log does not have that entry, or whose budget is
not what its log says, refuses every run, until this command tells what it has forgotten and its engineer goes on.
"""


@app.command(help=RESTORED_HELP)
@guard()
def restored(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False, folder: Folder = None
) -> None:
    """Accept that the log lacks what the coordinator has seen."""
    from silograph.cli.site.restored import accept_restored

    accept_restored(joined_folder(folder), yes=yes)


BUDGET_HELP = """What this site has opened of its data, over all versions and all studies, and what is left.

Every study that was answered counts, once: by the epsilon and delta that its noise amounts to, or as an opening without
noise. Limits are epsilon_total and sums_total in site.toml.
"""


@app.command(help=BUDGET_HELP)
@guard()
def budget(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False, folder: Folder = None
) -> None:
    """Show what is spent and left."""
    from silograph.cli.site.budget import show_budget

    show_budget(joined_folder(folder), as_json=as_json)


@app.command(help="The audit log: who asked what, when, what left this site, how many bytes.")
@guard()
def log(
    folder: Folder = None,
    last: Annotated[int, typer.Option("--last", "-n", help="How many entries; 0: all.")] = 20,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check that no entry was altered, removed or put in; exit code 1 if one was."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print entries as JSON, one per line.")] = False,
) -> None:
    """Show or verify the log."""
    from silograph.cli.site.log import log_table
    from silograph.federation.site.audit import entries
    from silograph.federation.site.audit import verify as check

    path = SiteFolder(site_folder(folder)).audit_log
    if not path.exists():  # pins are in it before anybody has joined
        joined_folder(folder)
    if verify:
        verdict = check(path)
        if verdict.problem is not None:
            raise SilographError(f"{path}: {verdict.problem}")
        torn = f", {verdict.torn} incomplete lines left by crashes" if verdict.torn else ""
        say(f"{path}: {verdict.entries} entries, unbroken{torn}.")
        return
    found = entries(path, last=last or None)
    if as_json:
        for entry in found:
            typer.echo(json.dumps(entry))  # in ASCII: nothing in it can do anything to a terminal
    else:
        Console(width=None if Console().is_terminal else PIPE_WIDTH).print(log_table(list(found)))


def _near(path: Path) -> Path:
    """The path as one would type it from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _option(home: Path, site: str) -> str:
    return "" if home == Path(site) else f" --folder {home}"
