"""The command `silograph audit`: attacks on ourselves, as a table or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from silograph._util.extras import required
from silograph.cli.options import given, takes
from silograph.cli.output import PIPE_WIDTH, Output, run_guarded, say
from silograph.cli.progress import showing_progress
from silograph.errors import ParameterError

if TYPE_CHECKING:
    from silograph.audit.findings import Finding
    from silograph.audit.plan import Trial
    from silograph.audit.scene import Scene

NOT_AS_CLAIMED = 1
PlanOption = partial(typer.Option, rich_help_panel="Planning")
MEASURED = ("measured", "expected")
PLANNED = ("nodes", "sites", "epsilon", "delta")
TRIALS, QUICK_TRIALS = 2000, 500
WIDE = 110  # columns of a terminal from which on six stand beside each other
LEGEND = (
    "[green]holds[/]: we claim this protection, and the attack failed. [yellow]broken, as we say[/]: we promise no "
    "protection here, and the attack shows why. [dim]broken (control)[/]: we took a protection out, and the attack "
    "noticed. An advantage of 0 is guessing, 1 is always right; 0.1 is right in 55 of 100 cases."
)
AUDIT_HELP = """Attack ourselves: what claims protection must hold, and what does not must break.

Each attack is run against the code that sites and coordinator run, with data made for it. The table tells who attacks,
what they hold, what came out beside what theory says, and the verdict. Controls are protections taken out on purpose:
an attack that does not break them would prove nothing.

Without a study or a run, all attacks are run on a self-made consortium: one-shot, masked, with noise for ε = 1. With
one, those that concern its settings, with its ε, δ and number of sites.

With --plan, nothing is attacked: by simulation on synthetic data, it tells how many people, a row each, every site
needs so that noise takes no more than .05 from the average precision of the consensus.

[bold]Examples[/bold]

  silograph audit

  silograph audit study.toml --trials 5000

  silograph audit run/ --json

  silograph audit --plan --nodes 20 --sites 5 --epsilon 1

[bold]Exit codes[/bold]  0 all is as claimed; 1 something is not, or bad input; 2 wrong options.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What a user may say."""

    target: Annotated[
        Path | None, typer.Argument(help="A study file, or the folder of a run.", metavar="[STUDY.toml|RUN]")
    ] = None
    trials: Annotated[int | None, typer.Option(help="Trials of each attack that guesses. Default: 2000.")] = None
    quick: Annotated[bool, typer.Option("--quick", help="500 trials: a first look, in seconds.")] = False
    plan: Annotated[bool, PlanOption("--plan", help="How many people a study with noise needs, by simulation.")] = False
    nodes: Annotated[int, PlanOption(help="Nodes of the graph.")] = 20
    sites: Annotated[int, PlanOption(help="Sites that take part, with masked sums.")] = 5
    epsilon: Annotated[float, PlanOption(help="ε of the study.")] = 1.0
    delta: Annotated[float, PlanOption(help="δ of the study.")] = 1e-5
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON instead of a table.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False


@takes(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Attack ourselves."""
    run_guarded(lambda: _plan(options) if options.plan else _audit(options))


def _audit(options: AuditOptions) -> None:
    for name in given(options):
        if name in PLANNED:
            raise ParameterError(f"--{name}: is for --plan. An audit takes it from the study.")
    for module in ("cryptography", "opendp"):
        required(module, extra="nvflare", purpose="to attack masks and noise")
    from silograph.audit.attacks import run_attacks
    from silograph.audit.target import scene_of

    usual = QUICK_TRIALS if options.quick else TRIALS
    trials = usual if options.trials is None else options.trials
    output, scene = Output(as_json=options.as_json, quiet=options.quiet), scene_of(options.target, trials=trials)
    with showing_progress(output.progress) as on_progress:
        found = list(run_attacks(scene, on_progress))
    if output.as_json:
        typer.echo(as_json(scene, found))
    elif not output.quiet:
        console = Console(width=None if Console().is_terminal else PIPE_WIDTH)
        console.print(table_of(scene, found, narrow=console.width < WIDE))
        console.print(LEGEND, summary(found), sep="\n", highlight=False)
    if not all(finding.as_claimed for finding in found):
        raise typer.Exit(NOT_AS_CLAIMED)


def _plan(options: AuditOptions) -> None:
    for name in ("target", "trials", "quick"):
        if name in given(options):
            raise ParameterError(f"{name}: is for an audit. Leave it or --plan out.")
    from silograph.audit.plan import plan

    output = Output(as_json=options.as_json, quiet=options.quiet)
    with showing_progress(output.progress) as on_progress:

        def tell(trial: "Trial") -> None:
            on_progress(f"{trial.people} people at each site", None)

        found = plan(options.nodes, options.sites, options.epsilon, options.delta, on_progress=tell)
    if output.as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    elif not output.quiet:
        Console().print(trials_table(found.trials))
        say(answer_to(options, found.people))


def trials_table(trials: Sequence["Trial"]) -> Table:
    """What was tried."""
    table = Table(title="average precision of the consensus", title_justify="left")
    for name in ("people at each site", "without noise", "with noise"):
        table.add_column(name, justify="right")
    for trial in trials:
        table.add_row(f"{trial.people:,}", f"{trial.without:.3f}", f"{trial.with_noise:.3f}")
    return table


def answer_to(options: AuditOptions, people: int | None) -> str:
    """The plan in a sentence."""
    asked = f"{options.nodes} nodes, {options.sites} sites, ε = {options.epsilon:g}, δ = {options.delta:g}"
    if people is None:
        return f"{asked}: more people than were tried. Take a larger ε or fewer nodes, or do without noise."
    return (
        f"{asked}: about {people:,} people at each site, {people * options.sites:,} in all, a row each. Personal "
        "graphs need fewer. Your data are not synthetic: take it as an order of magnitude."
    )


def as_json(scene: "Scene", found: Sequence["Finding"]) -> str:
    """All findings, for scripts."""
    told = {
        "about": scene.title,
        "trials": scene.trials,
        "as_claimed": all(finding.as_claimed for finding in found),
        "findings": [finding.plain() for finding in found],
    }
    return json.dumps(told, indent=2, ensure_ascii=False)


def table_of(scene: "Scene", found: Sequence["Finding"], *, narrow: bool = False) -> Table:
    """All findings, for people; `narrow`: with what belongs together in one column."""
    privacy = scene.privacy
    noise = f", ε = {privacy.epsilon:g}, δ = {privacy.delta:g}" if privacy.noisy else ", no noise"
    sums = "in all modes" if scene.everything else f"sums {privacy.sums}"
    about = f"{scene.title}: {scene.method}, {scene.n_sites} sites, {sums}{noise}; {scene.trials} trials"
    table = Table(title=about, title_justify="left", expand=narrow)
    names = ("who, with what: attack", "measured (expected)") if narrow else ("who", "holds", "attack", *MEASURED)
    for name, part in zip((*names, "verdict"), (6, 4, 2) if narrow else [None] * 6, strict=True):
        table.add_column(name, ratio=part)
    for finding in found:
        who, measured = (finding.who, finding.holds, finding.attack), f"{finding.measure} {finding.measured:.3g}"
        if narrow:
            cells: tuple[str, ...] = ("{}, with {}: {}".format(*who), f"{measured} ({finding.expected})")
        else:
            cells = (*who, measured, finding.expected)
        table.add_row(*cells, _verdict(finding))
    return table


def summary(found: Sequence["Finding"]) -> str:
    """One line on all of them."""
    wrong = [finding for finding in found if not finding.as_claimed]
    protected = sum(finding.protected for finding in found)
    controls = sum(finding.control for finding in found)
    bare = len(found) - protected - controls
    if wrong:
        return f"[bold red]{len(wrong)} of {len(found)} attacks did not end as claimed:[/] " + ", ".join(
            finding.name for finding in wrong
        )
    return (
        f"All {len(found)} attacks ended as claimed: {protected} protections hold, {bare} things that we do not "
        f"protect are broken{f', and so are {controls} controls' * bool(controls)}."
    )


def _verdict(finding: "Finding") -> str:
    if not finding.as_claimed:
        return f"[bold red]{finding.verdict}, not as claimed[/]"
    if finding.control:
        return "[dim]broken (control)[/]"
    return "[green]holds[/]" if finding.protected else "[yellow]broken, as we say[/]"
