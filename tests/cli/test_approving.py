"""`silograph site approve` tells all that it lets leave, and nobody's text does anything to a terminal."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from silograph._util.terminal import visible
from silograph.cli.app import app
from silograph.errors import SilographError
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.data import look_at_data
from silograph.federation.site.leaving import GRAPHS, WORDS, fields_up, possible_methods
from silograph.federation.site.settings import read_site
from silograph.federation.study_file import parse_study
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import built_in
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import build_setup
from testing.consortium import SITES, Consortium, Loopback, close, write_table

SITE = "oslo"
ANSI = "\x1b[2J\x1b[1;31mAPPROVED\x1b[0m\x1b]0;title\x07\u202egnp\u200b\r\nNote: fine"


@pytest.fixture
def consortium(tmp_path) -> Consortium:
    made = Consortium(tmp_path, approve_all=False)
    for site in SITES:
        (tmp_path / site / "federation.invite").touch()
    return made


def approve(consortium: Consortium, study: str | Path, *options: str, code: int = 0, site: str = SITE) -> str:
    words = ["site", "approve", str(study), "--yes", "--folder", str(consortium.folder / site), *options]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def prompt(consortium: Consortium, learn: str, policy: str = "", **top: str) -> str:
    consortium.run(learn, policy, **top)
    return approve(consortium, consortium.folder / "study.toml")


# --- what leaves ------------------------------------------------------------------------------------------------------


def settings_of(method: str) -> list[StudySettings]:
    """A method in all its forms."""
    forms = [{}, {"solver": "newton"}, {"solver": "gradient"}, {"weights": "equal"}, {"coupling": 0.0}]
    forms += [form | {"missing_nodes": "allow"} for form in forms]
    made = []
    for form in forms:
        try:
            made.append(StudySettings(method=method, **form))
        except SilographError:  # this method has no such form
            continue
    return made


@pytest.mark.parametrize("method", built_in())
def test_every_field_that_a_method_may_send_has_words(method):
    forms = settings_of(method)
    assert forms
    steps = [
        step
        for form in forms
        for made in (*possible_methods(form, n_silos=2), build_setup(form, Pairs.all(8)))
        for step in made.steps.values()
    ]
    assert {name for step in steps for name in step.up} <= set(WORDS)


@pytest.mark.parametrize(
    ("learn", "leaves"),
    [
        ('method = "independent"', True),
        ("coupling = 0", True),
        ('weights = "equal"', True),
        ('method = "mrmtl"', True),
        ('method = "algorithm1"', True),
        ("coupling = 0.5", True),  # if the study should come to have two silos
        ('method = "pooled"', False),
        ('method = "ditto"', False),
    ],
)
def test_the_prompt_says_that_the_graph_leaves_when_the_method_sends_it(consortium, learn, leaves):
    """`share_graphs = false` keeps it only where no round sends it."""
    said = prompt(consortium, f"{learn}\ndegree = 3", share_graphs="false")
    assert ("Your graph LEAVES this site, in the rounds." in said) == leaves
    assert (
        "Your graph is not sent. Whoever has `cost` and the study can compute it, or one much like it." in said
    ) != leaves
    assert "Your graph LEAVES this site" in prompt(consortium, f"{learn}\ndegree = 4")


def test_the_graph_is_not_sent_by_the_exact_method_of_three_sites(consortium):
    three = '["oslo", "lima", "kyoto"]'
    said = prompt(consortium, "coupling = 0.5\ndegree = 3", share_graphs="false", sites=three)
    assert "Your graph is not sent." in said
    assert "tilted" not in said


@pytest.mark.parametrize("learn", ['method = "independent"', "coupling = 0", "coupling = 0.5", 'method = "pooled"'])
def test_what_the_prompt_names_is_what_leaves(consortium, learn):
    """By the log of a real run: no field left that the prompt did not name."""
    run = consortium.run(f"{learn}\ndegree = 3")
    said = [approve(consortium, consortium.folder / "study.toml", site=site) for site in SITES][-1]
    services = consortium.services()
    assert consortium.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    log = [entry for entry in entries(consortium.folder / SITE / "audit.jsonl") if "left" in entry]
    left = {name for entry in log if entry.get("round") for name in re.findall(r"(\w+) \(\d+\)", entry["left"])}
    assert {"cost", "silos" if "pooled" in learn else "degree"} <= left
    named = {line.split()[0] for line in said.splitlines() if line.startswith("  ") and line.strip()}
    assert left <= named
    assert "reported" in named


def test_the_prompt_shows_the_study_its_terms_the_table_and_that_n_is_not_hidden(consortium):
    learn, policy = "degree = 3\nreport = false", 'quorum = 2\non_missing = "continue"'
    said = prompt(consortium, learn, policy, sites='["kyoto", "lima", "oslo"]', forbid='[["node 0", "node 1"]]')
    text = (consortium.folder / "study.toml").read_text()
    for line in text.splitlines():
        assert f"    {line}" in said
    for words in (
        f"SHA-256 {sha_of(text.encode())}",
        "kyoto, lima, oslo; at least 2 of these 3 take part",
        "8; 27 of 28 pairs may be edges",
        "standardize  false: numbers in your units leave",
        "on_missing continue",
        "Your number of samples is not reported. That does not hide it: of rounded data, z/N gives it away.",
        "40 rows of 8 nodes",
    ):
        assert words in said, words
    approval = Approvals(consortium.folder / SITE).get(sha_of(text.encode()))
    assert approval is not None
    assert f"Table: version {approval.table}" in said


def test_the_prompt_shows_how_a_study_differs_from_the_one_approved_last(consortium):
    assert "No other study is approved" in prompt(consortium, "degree = 3")
    said = prompt(consortium, "degree = 4", share_graphs="false")
    assert "\n    -degree = 3\n" in said
    assert "\n    +degree = 4\n" in said
    assert "\n    +share_graphs = false\n" in said
    assert "It is, to the byte, the study that was approved last" in prompt(
        consortium, "degree = 4", share_graphs="false"
    )


def test_fields_of_an_exact_study_are_those_of_its_steps():
    study = parse_study(b'name = "a"\nnodes = ["a", "b", "c"]\n', source="study")
    setup, rounds = fields_up(study, Pairs.all(3), n_tables=3)
    assert "cost" in setup
    assert {"target", "metric", "force", "silos"} <= set(rounds)
    assert not GRAPHS & set(rounds)
    assert GRAPHS & set(fields_up(study, Pairs.all(3), n_tables=1)[1])


# --- a changed table --------------------------------------------------------------------------------------------------


def test_a_table_with_one_row_more_needs_more_than_yes(consortium):
    run = consortium.run("degree = 3")
    study, home = consortium.folder / "study.toml", consortium.folder / SITE
    for site in SITES:
        approve(consortium, study, site=site)
    services = consortium.services()
    assert consortium.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    first = Approvals(home).approved()[0].table
    for n_samples, came in ((41, "1 row"), (59, "19 rows")):
        more_rows(consortium, n_samples)
        said = approve(consortium, study, code=2)
        assert f"Version {first}, 40 rows, was answered for" in said
        assert f"since then {came} came, 0 rows went" in said
        assert "THE DIFFERENCE OF THE ANSWERS SHOWS THE CHANGED ROWS" in said
        assert "add --despite-difference" in said
        assert Approvals(home).approved()[0].table == first
    said = approve(consortium, study, "--despite-difference")
    assert "Approved." in said
    assert Approvals(home).approved()[0].despite
    assert "despite the difference" in list(entries(home / "audit.jsonl"))[-1]["detail"]
    more_rows(consortium, 60)
    assert "THE DIFFERENCE" not in approve(consortium, study)
    assert not Approvals(home).approved()[0].despite


def more_rows(consortium: Consortium, n_samples: int) -> None:
    """The table with further rows behind those it had."""
    path = consortium.table(SITE)
    head, *rows = path.read_text().splitlines()
    write_table(path, 99, n_samples=20)
    path.write_text("\n".join([head, *rows[:40], *path.read_text().splitlines()[1 : n_samples - 39]]) + "\n")


def test_an_approval_that_cannot_be_logged_is_not_stored(consortium):
    consortium.run("degree = 3")
    home = consortium.folder / SITE
    (home / "audit.jsonl").mkdir()
    approve(consortium, consortium.folder / "study.toml", code=1)
    assert Approvals(home).approved() == []


def test_a_table_that_cannot_be_read_is_not_approved_for(consortium):
    consortium.run("degree = 3")
    consortium.table(SITE).unlink()
    assert "An approval holds for one version of the table" in approve(
        consortium, consortium.folder / "study.toml", code=1
    )


def test_studies_that_wait_are_rejected_one_or_all(consortium):
    home = consortium.folder / SITE
    texts = [f"n = {k}" for k in range(3)]
    for text in texts:
        Approvals(home).note_pending(sha_of(text.encode()), text, asked_by="c")
    approve(consortium, sha_of(texts[1].encode()), "--reject")
    assert [one.path.read_text() for one in Approvals(home).pending()] == [texts[0], texts[2]]
    assert "neither waits" in " ".join(approve(consortium, sha_of(texts[1].encode()), "--reject", code=2).split())
    CliRunner().invoke(app, ["site", "approve", "--reject-all", "--folder", str(home)], catch_exceptions=False)
    assert Approvals(home).pending() == []
    assert [entry["what"] for entry in entries(home / "audit.jsonl")] == ["rejected"] * 3


# --- nobody's text does anything to a terminal ------------------------------------------------------------------------


def test_what_cannot_be_seen_is_shown_as_its_code():
    assert visible("Ålesund 東京 'a'") == "Ålesund 東京 'a'"
    shown = visible(ANSI)
    assert shown.isprintable()
    for code in ("\\x1b[2J", "\\x07", "\\u202e", "\\u200b", "\\r\\n"):
        assert code in shown
    assert visible("a\nb\x1b", lines=True) == "a\nb\\x1b"
    assert visible("\udc80\x9b\x7f") == "\\udc80\\x9b\\x7f"


def nothing_moves(output: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in output)


def test_the_log_and_the_list_of_studies_do_nothing_to_a_terminal(consortium):
    home = consortium.folder / SITE
    AuditLog(home / "audit.jsonl").append(
        {"what": ANSI, "from": ANSI, "kind": ANSI, "left": ANSI, "code": ANSI, "bytes": 3}
    )
    text = "n = 1"
    Approvals(home).note_pending(sha_of(text.encode()), text, asked_by=ANSI)
    Approvals(home).approve(b"n = 2", name=ANSI, by=ANSI, table="ab" * 32)
    for words in (["log"], ["log", "--json"], ["approve"]):
        said = CliRunner().invoke(app, ["site", *words, "--folder", str(home)], catch_exceptions=False).output
        assert nothing_moves(said), repr(said)
        assert "x1b" in said or "u001b" in said
    assert json.loads(said := CliRunner().invoke(app, ["site", "log", "--json", "--folder", str(home)]).output)
    assert json.loads(said)["what"] == ANSI


def test_the_status_of_a_federation_does_nothing_to_a_terminal():
    pytest.importorskip("nvflare")
    from rich.console import Console

    from silograph.cli.federation.status import status_tables

    site = {
        "site": "oslo",
        "joined": True,
        "key": "ab" * 32,
        "connected": True,
        "last_seen": 0,
        "version": ANSI,
        "data": ANSI,
        "told": 0,
    }
    run = {
        "run": ANSI,
        "study": ANSI,
        "sites": [ANSI],
        "state": "waiting",
        "why": ANSI,
        "since": 50.0,
        "begun": 0,
        "stage": ANSI,
        "round": 1,
        "gap": None,
        "last": 0,
    }
    server = {"address": "x:1", "answers": True, "version": ANSI}
    data = {"federation": "f", "server": server, "now": 7300.0, "sites": [site], "runs": [run]}
    console = Console(width=600, record=True, file=StringIO())
    console.print(status_tables(data))
    console.print(status_tables(data | {"runs": [run | {"state": ANSI}]}))
    assert nothing_moves(console.export_text())
    console.print(status_tables(data | {"sites": [site | {"data": "restored", "told": 1.0}], "runs": []}))
    said = console.export_text()
    assert "silograph site restored" in said
    assert "(2 h ago)" in said  # what it told earlier is marked as such


def test_notes_and_errors_of_a_run_do_nothing_to_a_terminal(capsys):
    from silograph.cli.output import tell

    tell("Note", "cyan", ANSI)
    said = capsys.readouterr().err
    assert "\x1b[2J" not in said
    assert "\\x1b[2J" in said


# --- doubts -----------------------------------------------------------------------------------------------------------


def test_what_is_doubtful_of_the_table_is_shown_and_logged(consortium):
    path = consortium.table(SITE)
    assert "LOOK TWICE" not in prompt(consortium, 'method = "oneshot"', scale="[0.1, 10]")
    head, *rows = path.read_text().splitlines()
    slow = [row for row in rows for _ in range(10)]  # each sample ten times: they resemble the ones before them
    path.write_text("\n".join([head, *(",".join(f"{1000 * float(x)}" for x in row.split(",")) for row in slow[:40])]))
    said = prompt(consortium, 'method = "oneshot"', scale="[0.1, 10]")
    assert re.search(r"LOOK TWICE: .* outside the study's range \(0.1 to 10\): 'oslo' \(\d.*e\+06\)", said)
    assert "40 samples are worth about" in said
    (*_, last) = entries(consortium.folder / SITE / "audit.jsonl")
    assert last["detail"].endswith("doubts: range, serial")
    assert "e+06" not in last["detail"]


def test_the_range_that_a_study_gives_is_among_its_terms(consortium):
    assert "scale        0.1 to 10: else your site refuses" in prompt(
        consortium, 'method = "oneshot"', scale="[0.1, 10]"
    )


# --- many patients ----------------------------------------------------------------------------------------------------


@pytest.fixture
def patients(tmp_path) -> Consortium:
    made = Consortium(tmp_path, approve_all=False, patients={SITE: 6})
    for site in SITES:
        (tmp_path / site / "federation.invite").touch()
    return made


@pytest.mark.parametrize("learn", ['method = "independent"', "coupling = 0.5", 'method = "oneshot"'])
def test_of_several_tables_the_prompt_names_the_sum_their_number_and_what_stays(patients, learn):
    run = patients.run(f"{learn}\ndegree = 3")
    said = [approve(patients, patients.folder / "study.toml", site=site) for site in SITES][-1]
    n_rows = sum(20 + 3 * k for k in range(6))
    assert (
        f"6 tables: version {look_at_data(read_site(patients.folder / SITE), patients.folder / SITE).version}" in said
    )
    assert f"{n_rows} rows together of 8 nodes" in said
    assert "Leaves in set-up, the sum over your 6 tables of:" in said
    assert "the mean squared difference z/N of its rows" in said
    assert "Stays: every table's own numbers, graph and contribution; names of patients and files; site.toml." in said
    assert ("The SUM of your tables' graphs leaves" in said) == ("independent" in learn)
    assert "Your graph" not in said
    assert "private" not in said  # nor in a log of the terminal
    services = patients.services()
    assert patients.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    log = [entry for entry in entries(patients.folder / SITE / "audit.jsonl") if "left" in entry]
    left = {name for entry in log if entry.get("round") for name in re.findall(r"(\w+) \(\d+\)", entry["left"])}
    named = {line.split()[0] for line in said.splitlines() if line.startswith("  ") and line.strip()}
    assert left <= named


def test_one_patient_more_is_approved_despite_the_difference_only(patients):
    run = patients.run("degree = 3")
    for site in SITES:
        approve(patients, patients.folder / "study.toml", site=site)
    services = patients.services()
    assert patients.run_attempt(run, Loopback(services)).ended == "done"
    close(services)
    patients.add_patient(SITE, 30)
    said = approve(patients, patients.folder / "study.toml", code=2)
    assert "6 tables, was answered for" in said
    assert "since then 1 table came, 0 tables went" in said
    assert "THE DIFFERENCE OF THE ANSWERS SHOWS THE CHANGED TABLES" in said
    assert "min_tables = 5" in " ".join(said.split())
    assert "Approved." in approve(patients, patients.folder / "study.toml", "--despite-difference")


def test_gaps_and_nodes_that_the_study_allows_to_be_missing_are_no_hindrance(consortium):
    path = consortium.table(SITE)
    head, first, *rows = [line.split(",") for line in path.read_text().splitlines()]
    first[0] = ""
    path.write_text("\n".join(",".join(row[:-1]) for row in (head, first, *rows)))
    said = prompt(consortium, 'method = "exact"', missing='"pairs"', missing_nodes='"allow"')
    assert "Approved." in said
    assert "LOOK TWICE" not in said


@pytest.mark.parametrize("kind", ["gap", "missing node"])
def test_a_study_that_does_not_allow_them_is_the_coordinators_to_change(consortium, kind):
    path = consortium.table(SITE)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    nodes = json.dumps(rows[0])
    if kind == "gap":
        rows[1][0] = ""
    else:
        rows = [row[:-1] for row in rows]
    path.write_text("\n".join(map(",".join, rows)))
    study = consortium.folder / "study.toml"
    study.write_text(f'name = "test"\nnodes = {nodes}\n')
    said = " ".join(approve(consortium, study, code=1).split())
    cure = 'missing = "pairs"' if kind == "gap" else 'missing_nodes = "allow"'
    assert f"{cure} in the study: ask the coordinator" in said
