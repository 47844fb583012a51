"""The commands `silograph federation …`, for the consortium's engineer."""

import contextlib
import json
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from silograph._util.terminal import visible
from silograph.cli.federation import members
from silograph.cli.folders import InFederation as Folder
from silograph.cli.folders import Systemd, federation_folder
from silograph.cli.output import (
    NOT_CONVERGED,
    PIPE_WIDTH,
    Output,
    complaints,
    guard,
    need_nvflare,
    run_guarded,
    say,
    tell,
    warn,
)
from silograph.errors import ParameterError, SilosError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Learn between sites whose signals stay where they are. Each site's side is [bold]silograph site[/bold].",
)
app.add_typer(members.app)

NEW_HELP = """Found a federation: a folder with everything to start, and an invitation to send to the sites.

[bold]Example[/bold]

  silograph federation new brain-study --server coord.example.org --sites oslo lima kyoto --nodes regions.txt
"""


@app.command(help=NEW_HELP)
@guard()
def new(
    name: Annotated[str, typer.Argument(help="The federation's name; also the folder's.")],
    server: Annotated[str, typer.Option(help="The host name at which sites will reach the coordinator.")],
    sites: Annotated[list[str], typer.Option(help="The sites' names: --sites oslo lima kyoto.", metavar="SITE...")],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    port: Annotated[int, typer.Option(help="The server's port; the only one that sites must reach.")] = 8002,
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="The nodes that every site's table must have: a text file with a name per line, or a table whose "
            "first row names them. Without it, write nodes.txt before you run a study."
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder to make. Default: the federation's name.")] = None,
) -> None:
    """Found a federation."""
    need_nvflare()
    from silograph.cli.federation.found import found_federation

    names = [site for group in (*sites, *(more or ())) for site in group.split(",") if site]
    for line in found_federation(folder or Path(name), name=name, server=server, port=port, sites=names, nodes=nodes):
        typer.echo(line)


@app.command(help="Sign a site's request to join. Send the site what comes out; it holds no secret.")
@guard()
def approve(
    request: Annotated[Path, typer.Argument(help="SITE.request.zip from the site.")],
    out: Annotated[Path | None, typer.Option(help="File to write. Default: SITE.signed.zip in this folder.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Sign although another key was signed for this site before.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Sign a request."""
    need_nvflare()
    from silograph.federation.fingerprints import shown_fingerprint
    from silograph.federation.nvflare.authority import read_request, sign_request
    from silograph.federation.nvflare.hosting import running

    home = federation_folder(folder)
    site, key = read_request(home, request)
    made = sign_request(home, request, out or Path(f"{site}.signed.zip"), force=force)
    typer.echo(f"Send to {site}: {made.name}")
    typer.echo(f"The key that was signed; make sure by telephone that {site} has just this one:")
    typer.echo(f"  {shown_fingerprint(key)}")
    typer.echo(f"There: silograph site join {made.name} --data THEIR-TABLE-OR-FOLDER")
    typer.echo(f"Or, if it has joined before: silograph site renew {made.name}")
    if not running(home):
        typer.echo(members.ELSEWHERE)


@app.command(help="Run the coordinator's server, until Ctrl-C. Restarts what dies.")
@guard("the server has ended; start it again with: silograph federation start")
def start(folder: Folder = None, systemd: Systemd = False) -> None:
    """Host the server."""
    need_nvflare()
    from silograph.federation.folders import FederationFolder
    from silograph.federation.members import notices
    from silograph.federation.nvflare.hosting import host_server
    from silograph.federation.nvflare.systemd import systemd_unit

    home = federation_folder(folder)
    if systemd:
        typer.echo(systemd_unit("server", home))
    else:
        for text in notices(FederationFolder(home)):
            warn(text)
        host_server(home, say=typer.echo)


STATUS_HELP = """The sites: joined or not, last seen, version, data ready or not; and the runs.

With [bold]--page[/bold], a page in the browser instead, which stays up to date until Ctrl-C: sites, runs, the certified
gap as it falls, and what happened. It needs no server: a file beside it has the data.
"""


@app.command(help=STATUS_HELP)
@guard()
def status(
    folder: Folder = None,
    quick: Annotated[bool, typer.Option("--quick", help="Do not ask the sites anew for version and data.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep a page up to date, such as status.html, to look at in a browser."),
    ] = None,
) -> None:
    """Show how things are."""
    need_nvflare()
    from silograph.cli.federation.status import status_data, status_tables

    home = federation_folder(folder)
    if page is not None:
        if as_json:
            raise ParameterError("--page, --json: give one of them.")
        _keep_page(page, home, ask=not quick)
        return
    data = status_data(home, ask=not quick, say=lambda text: tell("Note", "cyan", visible(text)))
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        _print(status_tables(data))
    for text in data["warnings"]:
        warn(text)
    if not data["server"]["answers"]:
        raise SilosError(data["server"]["why"])


def _keep_page(page: Path, home: Path, *, ask: bool) -> None:
    from silograph.cli.federation.live import LivePage, keep_page
    from silograph.federation.nvflare.session import lead_session

    command = f"silograph federation status --page {shlex.quote(str(page))}"
    with lead_session(home) as session, contextlib.suppress(KeyboardInterrupt):
        live = LivePage(page, home, session, command=command)
        keep_page(live, ask=ask, begun=lambda: say(f"Open {page} in a browser. It is kept up to date until Ctrl-C."))


@app.command(help="The runs that the server has: running, waiting (for what), stopped (why), abandoned or done.")
@guard()
def runs(
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List runs."""
    need_nvflare()
    from silograph.cli.federation.asking import desk
    from silograph.cli.federation.status import runs_table

    with desk(federation_folder(folder)) as session:
        found = session.ask("status")
    if as_json:
        typer.echo(json.dumps(found["runs"], indent=2))
    elif not found["runs"]:
        typer.echo("No run yet. Begin one: silograph federation run STUDY.toml --out FOLDER")
    else:
        _print(runs_table(found["runs"], found["now"]))


def _print(shown: RenderableType) -> None:
    Console(width=None if Console().is_terminal else PIPE_WIDTH).print(shown)


RunName = Annotated[str, typer.Argument(metavar="RUN", help="The run's name, of `silograph federation runs`.")]


@app.command(help="Give a run up: the server asks the sites nothing more of it. --resume goes on with it all the same.")
@guard()
def abort(run: RunName, folder: Folder = None) -> None:
    """Give a run up."""
    need_nvflare()
    from silograph.cli.federation.asking import desk

    with desk(federation_folder(folder)) as session:
        session.ask("abort", run=run)
    typer.echo(f"{run} is given up; its processes end within seconds. To remove it: silograph federation forget {run}")


@app.command(help="Remove a run that is done, stopped or abandoned from the server, with its results there. Asks.")
@guard()
def forget(
    run: RunName, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, folder: Folder = None
) -> None:
    """Remove a run."""
    need_nvflare()
    from silograph.cli.federation.asking import desk

    home = federation_folder(folder)
    if not yes and not typer.confirm(f"Remove {run} from the server, with its results there?"):
        typer.echo("Nothing was removed.")
        raise typer.Exit(1)
    with desk(home) as session:
        session.ask("forget", run=run)
    typer.echo(f"{run} is removed from the server. What was fetched, and what sites keep, stays.")


STUDY_HELP = """Write a study of the federation's sites, to edit and to run: study.toml, every choice explained.

From three sites on, sums are masked, so that the coordinator sees no site's part of them. Such a study names the sites'
public keys; so all of them must have joined.
"""


@app.command(help=STUDY_HELP)
@guard()
def study(
    sites: Annotated[
        list[str] | None, typer.Option(help="Who takes part: --sites oslo lima kyoto. Default: all.", metavar="SITE...")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    name: Annotated[str | None, typer.Option(help="The study's name. Default: the federation's.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, beside nodes.txt. Default: study.toml in the federation's folder."),
    ] = None,
    open_sums: Annotated[
        bool,
        typer.Option("--open", help="Let the coordinator see each site's part of the sums; then all methods can run."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier study.")] = False,
    folder: Folder = None,
) -> None:
    """Write a study."""
    need_nvflare()
    from silograph.cli.federation.study import write_study

    names = [site for group in (*(sites or ()), *(more or ())) for site in group.split(",") if site]
    home = federation_folder(folder)
    for line in write_study(home, sites=names, name=name, out=out, open_sums=open_sums, force=force):
        typer.echo(line)


RUN_HELP = """Run a study with the sites. The server conducts it, whatever dies on the way; here you look on.

Works from any machine that has the federation's lead/ and federation.json. Ends in the folder that `silograph learn`
would write. Sites that have not approved the study yet are waited for. Ctrl-C, a lost connection or a laptop that
sleeps stop nothing: look on again with --resume, from anywhere, also days later. To stop a run: `federation abort`.

[bold]Exit codes[/bold]  0 learned; 1 a site or an input is in the way, or the run was given up; 2 wrong options; 3
learned and written, but the tolerance was not met; 130 no longer looked on; the run goes on.
"""


@app.command(help=RUN_HELP)
def run(
    study: Annotated[Path | None, typer.Argument(help="The study file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Look on at the unfinished run of this folder; one that stopped goes on.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run in --out.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Also write report.html, a page to look at.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep a page up to date while it runs, such as live.html, for a browser."),
    ] = None,
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's record as JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run a study."""
    output = Output(as_json=as_json, quiet=quiet)

    def work() -> None:
        need_nvflare()
        from silograph.cli.federation.run import begin_folder, home_of, run_of

        if resume is not None:
            if study is not None or out is not None or force:
                raise ParameterError("--resume: the run knows its study and where to write. Give neither.")
            if RunLayout(resume).is_finished:
                done = read_run(resume).record
                note = f"{resume}: this run is finished, there was nothing to resume."
                pages = write_page(resume) if report else []
                output.result(done, partial(summary, done, resume), lambda: [note, *pages])
                return
            home, place = home_of(resume, folder), resume
        elif study is None or out is None:
            raise ParameterError("Give a study file and --out FOLDER, or --resume FOLDER. See --help.")
        else:
            home, place = federation_folder(folder), out
            begin_folder(home, study, out, force=force)
        name = run_of(place)
        try:
            follow(home, place)
        except KeyboardInterrupt:
            again = RunLayout(place).resume_command()
            complaints.print(
                f"The run goes on at the server. Look on again with: {again}\n"
                f"To stop it: silograph federation abort {name}",
                markup=False, highlight=False,
            )  # fmt: skip
            raise typer.Exit(130) from None

    def follow(home: Path, place: Path) -> None:
        from silograph.cli.federation.looking import Looker
        from silograph.cli.federation.run import follow_run
        from silograph.cli.progress import progress_bar

        note = (lambda text: None) if quiet else (lambda text: tell("Note", "cyan", visible(text)))
        with progress_bar(output.progress) as progress:
            looker = Looker(progress, terminal=output.progress, say=note, quiet=quiet)
            record, notes = follow_run(home, place, looker, note, fresh=resume is None, page=page)
        pages = write_page(place) if report else []
        output.result(record, lambda: summary(record, place), lambda: [*notes, *pages])
        for text in record.warnings.values():
            warn(text)
        if record.result.converged is False:
            raise typer.Exit(NOT_CONVERGED)

    from silograph.cli.report import write_page
    from silograph.cli.summary import summary
    from silograph.runs.layout import RunLayout
    from silograph.runs.reader import read_run

    run_guarded(work)


DEMO_HELP = """All of it on this machine: found a federation, let sites join, start all, run a study, show the logs.

Every step is a command that you could type; each is printed before it runs. Nothing is left running.
"""


@app.command(help=DEMO_HELP)
@guard()
def demo(
    sites: Annotated[int, typer.Option(min=2, max=8, help="How many sites.")] = 3,
    out: Annotated[Path, typer.Option(help="Folder to make.")] = Path("federation-demo"),
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demo in --out.")] = False,
) -> None:
    """Show a federation."""
    need_nvflare()
    from silograph.cli.federation.demo import demonstrate

    demonstrate(out, n_sites=sites, force=force)
