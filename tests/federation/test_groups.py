"""Two groups of patients, compared between sites by sums over each group: no patient's graph leaves."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind
from typer.testing import CliRunner

from silograph import compare_groups, read_graph, read_run
from silograph.cli.app import app
from silograph.cli.federation.run import _notes
from silograph.errors import GraphError, ParameterError
from silograph.federation.coordinator.run import open_run
from silograph.federation.envelope import open_message
from silograph.federation.groups import GROUP_FIELDS
from silograph.federation.refusals import REASONS
from silograph.federation.site.audit import entries
from silograph.federation.study_file import parse_study
from silograph.graph.graph import Graph
from silograph.protocol.codec import decode_task, encode_task
from silograph.protocol.messages import Task
from silograph.report import write_report
from silograph.runs.writer import adopt_results, begin_run
from testing.conformance import EXACT, ONESHOT, digests
from testing.consortium import NODES, SITES, Consortium, Loopback, approve, close, rewrite

PATIENTS = {"kyoto": 10, "lima": 11, "oslo": 12}
GROUPS = '["patient", "control"]'
INDEPENDENT = 'method = "independent"\nalpha = 0.5\nbeta = 0.25'
STOP = 'on_missing = "stop"\ntimeout = 0.1'


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr("silograph.federation.coordinator.request.COMING_UP", 0.1)


def label(consortium: Consortium, site: str, labels: dict[str, str] | None = None) -> None:
    """The table of groups of a site: every other table is a patient, but for `labels`."""
    names = sorted(path.stem for path in (consortium.folder / site / "tables").glob("*.csv"))
    known = {name: "patient" if int(name.rpartition("-")[2]) % 2 else "control" for name in names} | (labels or {})
    rows = [f"{name},{group}" for name, group in known.items() if group != "no row"]
    (consortium.folder / site / "people.csv").write_text("\n".join(["silo,dx", *rows]) + "\n")


def labelled(folder: Path, patients: dict[str, int] = PATIENTS, **limits) -> Consortium:
    consortium = Consortium(folder, patients=patients, **{"groups": Path("people.csv"), **limits})
    for site in patients:
        label(consortium, site)
    return consortium


def ended(consortium: Consortium, learn: str = EXACT, **top: str) -> tuple[str, str, str]:
    """How an attempt ends, and if badly, the code by which a site refused, and what its log says of it.

    Where all would refuse, the first one ends the run, and others may not be asked any more.
    """
    services = consortium.services()
    outcome = consortium.run_attempt(consortium.run(learn, policy=STOP, **top), Loopback(services))
    close(services)
    if outcome.ended == "done":
        return "done", "", ""
    logs = [consortium.folder / site / "audit.jsonl" for site in consortium.sites]
    refused = [entry for log in logs if log.exists() for entry in entries(log) if "code" in entry]
    return outcome.ended, str(refused[-1]["code"]), str(refused[-1]["detail"])


def dense(graph: Graph) -> np.ndarray:
    found = np.zeros((len(NODES), len(NODES)))
    found[graph.rows, graph.cols] = graph.weights
    return found + found.T


def weights_at_home(consortium: Consortium, run_id: str) -> dict[str, np.ndarray]:
    """Every patient's graph by group, from the sites' own folders: (patients, pairs)."""
    found: dict[str, list[np.ndarray]] = {"patient": [], "control": []}
    rows, cols = np.triu_indices(len(NODES), 1)
    for site in consortium.sites:
        with (consortium.folder / site / "people.csv").open() as file:
            groups = {row["silo"]: row["dx"] for row in csv.DictReader(file)}
        home = read_run(consortium.folder / site / "results" / run_id)
        for name, graph in home.graphs.items():
            if groups[name] in found:
                found[groups[name]].append(dense(graph)[rows, cols])
    return {group: np.array(graphs) for group, graphs in found.items()}


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [EXACT, ONESHOT, INDEPENDENT], ids=["exact", "oneshot", "independent"])
def test_the_sums_give_welchs_test_of_the_graphs_that_stayed_at_home(tmp_path, method):
    consortium = labelled(tmp_path)
    run = consortium.run(method, groups=GROUPS)
    compared = consortium.finish(run) / "compare"
    graphs = weights_at_home(consortium, run.run_id)
    assert [len(one) for one in graphs.values()] == [16, 17]
    with np.errstate(all="ignore"):
        expected = ttest_ind(graphs["patient"], graphs["control"], equal_var=False)
    ends = [(NODES[a], NODES[b]) for a, b in zip(*np.triu_indices(len(NODES), 1), strict=True)]
    with (compared / "edges.csv").open() as file:
        told = {(row["source"], row["target"]): row for row in csv.DictReader(file)}
    tested = 0
    for k, pair in enumerate(ends):
        both = np.concatenate([graphs["patient"][:, k], graphs["control"][:, k]])
        assert (pair in told) == (both > 0).any()
        if pair in told and told[pair]["p"]:
            row, tested = told[pair], tested + 1
            assert float(row["mean_first"]) == pytest.approx(graphs["patient"][:, k].mean(), rel=1e-12)
            assert float(row["statistic"]) == pytest.approx(expected.statistic[k], rel=1e-6)
            assert float(row["df"]) == pytest.approx(expected.df[k], rel=1e-6)
            assert float(row["p"]) == pytest.approx(expected.pvalue[k], rel=1e-6)
    record = json.loads((compared / "compare.json").read_text())
    assert (record["first"], record["second"], record["counts"]) == ("patient", "control", [16, 17])
    assert record["tested"] == tested > 10
    assert "This is Welch's t-test on sums, not a test by permutation" in record["says"]


def test_a_difference_that_is_there_is_found(tmp_path):
    consortium = labelled(tmp_path)
    for site, number in PATIENTS.items():
        for k in range(1, number, 2):
            path = consortium.patient(site, k)
            head, *rows = path.read_text().splitlines()
            cells = [row.split(",") for row in rows]
            rng = np.random.default_rng(k)
            for row in cells:  # nodes 0 and 7 are far apart in all others
                row[7] = repr(float(row[0]) + 0.1 * rng.normal())
            path.write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    compared = consortium.finish(consortium.run(INDEPENDENT, groups=GROUPS)) / "compare"
    with (compared / "edges.csv").open() as file:
        first = next(csv.DictReader(file))
    assert (first["source"], first["target"]) == ("node 0", "node 7")
    assert float(first["p_family"]) < 1e-6
    assert "of node 0 – node 7 (patient − control = +" in said(compared.parent)


def test_without_groups_a_labelled_consortium_ends_in_the_same_bits(tmp_path):
    plain = Consortium(tmp_path / "plain", patients=PATIENTS)
    expected = digests(plain.finish(plain.run(EXACT)))
    consortium = labelled(tmp_path / "labelled")
    results = consortium.finish(consortium.run(EXACT))
    assert digests(results) == expected
    assert not (results / "compare").exists()
    asked = consortium.finish(consortium.run(EXACT, groups=GROUPS))
    assert {name: one for name, one in digests(asked).items() if "compare" not in str(name)} == expected


def test_the_comparison_goes_with_the_run_and_the_command_tells_it(tmp_path):
    consortium, out = labelled(tmp_path), tmp_path / "out"
    run = consortium.run(INDEPENDENT, groups=GROUPS)
    results = consortium.finish(run)
    begin_run(out, {"format": 1, "federation": str(tmp_path), "run": run.name})
    adopt_results(out, results)
    assert (out / "compare" / "first" / "graph.npz").is_file()
    assert write_report(out).is_file()
    assert said(out) in _notes(read_run(out).record, out, 5)
    with pytest.raises(GraphError, match="the run's compare/ has Welch's test"):
        compare_groups(out, dict.fromkeys(SITES, "a"))


# --- what leaves ------------------------------------------------------------------------------------------------------


def test_neither_a_label_nor_a_patient_is_in_any_message(tmp_path):
    consortium, seen = labelled(tmp_path), []
    for site in SITES:
        path = consortium.folder / site / "people.csv"
        path.write_text(
            path.read_text().replace("dx", "dx,secret").replace("\n", ",hidden\n").replace("secret,hidden", "secret")
        )
        settings = consortium.folder / site / "site.toml"
        settings.write_text(settings.read_text().replace("# groups_column", "groups_column").replace("diagnosis", "dx"))

    def tamper(site, data, service):
        reply = service(data)
        seen.extend([data, reply])
        return reply

    consortium.finish(consortium.run(EXACT, groups=GROUPS), Loopback(consortium.services(), tamper))
    assert len(seen) > 40
    assert not any(word in one for one in seen for word in (b"private", b"hidden", b"people.csv"))
    left = [entry.get("left") for entry in entries(consortium.folder / "lima" / "audit.jsonl")]
    names = [f"{name}_{side}" for side in ("first", "second") for name in ("count", "sum", "squares")]
    assert left[-1] == "the sum over 11 tables: " + ", ".join(
        f"{name} ({1 if 'count' in name else 28})" for name in names
    )


def test_the_prompt_names_each_field_and_what_the_sums_tell(tmp_path):
    consortium = labelled(tmp_path, {"oslo": 12}, approve_all=False)
    consortium.run(EXACT, groups=GROUPS)

    def prompt(code: int) -> str:
        words = ["site", "approve", str(tmp_path / "study.toml"), "--yes", "--folder", str(tmp_path / "oslo")]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    said = prompt(0)
    assert "Leaves at the end, once, of your tables that people.csv calls 'patient' and 'control', as they are:" in said
    assert "count_first how many they are in 'patient': 6" in said
    assert all(f"{name} " in said for name in GROUP_FIELDS)
    assert "Where one or two tables of a group alone have an edge, these sums tell its weights" in said
    assert "A label that changes is a change of the data: approve it anew." in said
    assert "private" not in said
    label(consortium, "oslo", {"private-oslo-0": "other"})
    assert "different tables in neither group: 1" in prompt(1)


def test_an_approval_does_not_outlast_a_change_of_labels(tmp_path):
    consortium = labelled(tmp_path, approve_all=False)
    run = consortium.run(EXACT, policy=STOP, groups=GROUPS)
    for site in SITES:
        approve(consortium.folder / site, run.study().text)
    swapped = {f"private-oslo-{k}": "patient" if k % 2 == 0 else "control" for k in range(12)}
    label(consortium, "oslo", swapped)
    services = consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert outcome.ended == "trouble"
    assert "the table has changed" in str(list(entries(consortium.folder / "oslo" / "audit.jsonl"))[-1]["detail"])


def test_sums_per_group_are_told_once_and_end_the_run(tmp_path):
    consortium, kept = labelled(tmp_path), {}

    def tamper(site, data, service):
        kept[site, open_message(data, consortium.trust).head["kind"]] = data
        return service(data)

    services = consortium.services()
    run = consortium.run(EXACT, groups=GROUPS)
    consortium.run_attempt(run, Loopback(services, tamper))
    finish, last = kept["oslo", "finish"], kept["oslo", "round"]

    def asked(data: bytes):
        return open_message(services["oslo"].reply(data), consortium.trust)

    again = asked(finish)
    assert (again.head["kind"], len(again.body) > 100) == ("answer", True)
    task = decode_task(open_message(finish, consortium.trust).body)
    other = Task(header=task.header, parts={**task.parts, "consensus": 2 * task.vector("consensus")})
    changed = rewrite(finish, consortium.server, trust=consortium.trust, body=encode_task(other))
    assert asked(changed).head["code"] == "conflict"
    task = decode_task(open_message(last, consortium.trust).body)
    number = task.header.round + 1
    more = encode_task(Task(header=replace(task.header, round=number), parts=task.parts))
    assert (
        asked(rewrite(last, consortium.server, trust=consortium.trust, body=more, round=number)).head["code"]
        == "conflict"
    )
    close(services)
    services = consortium.services()  # and after the process was started anew
    asked(kept["oslo", "hello"])
    assert asked(finish).body == again.body
    assert asked(changed).head["code"] == "conflict"
    close(services)


def told(digests: dict[str, str]) -> dict[str, str]:
    """Without the record, which has the time."""
    return {name: digest for name, digest in digests.items() if not name.endswith("compare.json")}


def said(results: Path) -> str:
    return str(json.loads((results / "compare" / "compare.json").read_text())["says"])


class Killed(BaseException):
    """A process ends here; no code of it may hold this up."""


def test_a_run_cut_short_at_its_end_tells_the_same_sums(tmp_path):
    undisturbed = labelled(tmp_path / "undisturbed")
    results = undisturbed.finish(undisturbed.run(EXACT, groups=GROUPS))
    expected, says = digests(results), said(results)
    consortium, met = labelled(tmp_path / "cut"), set()
    run = consortium.run(EXACT, groups=GROUPS)

    def tamper(site, data, service):
        kind = open_message(data, consortium.trust).head["kind"]
        for when in ("before", "after"):
            if when == "after":
                reply = service(data)
            if kind == "finish" and (site, when) not in met:
                met.add((site, when))
                raise Killed
        return reply

    while True:
        services = consortium.services()
        try:
            assert consortium.run_attempt(open_run(run.folder), Loopback(services, tamper)).ended == "done"
            break
        except Killed:
            continue
        finally:
            close(services)
    assert len(met) == 6
    assert told(digests(run.folder / "results")) == told(expected)
    assert said(run.folder / "results") == says


@pytest.mark.parametrize("lie", ["fewer", "squares"])
def test_sums_that_no_graphs_have_are_not_believed(tmp_path, monkeypatch, lie):
    from silograph.federation.site import run as site_run

    honest = site_run.sum_groups

    def lying(header, site, graphs, members, scalars):
        if lie == "fewer":
            members = [members[0][:2], members[1]]
        graphs = [w if lie == "fewer" else -w for w in graphs]
        return honest(header, site, graphs, members, scalars)

    monkeypatch.setattr(site_run, "sum_groups", lying)
    consortium = labelled(tmp_path)
    services = consortium.services()
    outcome = consortium.run_attempt(consortium.run(EXACT, policy=STOP, groups=GROUPS), Loopback(services))
    close(services)
    assert (outcome.ended, outcome.troubles[0]["kind"]) == ("trouble", "rejected")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({f"private-oslo-{k}": "control" for k in (1, 3)}, "different tables in group 'patient': 4, the least is 5"),
        ({"private-oslo-1": "other"}, "different tables in neither group: 1, the least is 5"),
        ({"private-oslo-1": "n/a"}, "expected a group for each table, but 1 have none"),
        ({"private-oslo-1": "no row"}, "expected a row for each silo, but 1 of 12 have none"),
    ],
    ids=["few", "rest", "gap", "no row"],
)
def test_a_site_with_few_in_a_group_or_without_a_label_refuses_before_anything_leaves(tmp_path, labels, said):
    consortium = labelled(tmp_path)
    label(consortium, "oslo", labels)
    how, code, detail = ended(consortium, groups=GROUPS)
    assert (how, code) == ("trouble", "groups")
    assert said in detail
    assert not any(entry.get("round") for entry in entries(consortium.folder / "oslo" / "audit.jsonl"))
    assert code in REASONS


def test_a_site_without_labels_or_with_one_table_refuses(tmp_path):
    how, code, detail = ended(
        labelled(tmp_path / "none", {"oslo": 12, "lima": 10, "kyoto": 10}, groups=None), groups=GROUPS
    )
    assert (how, code) == ("trouble", "groups")
    assert "the study compares groups; expected several tables, and [table] groups" in detail
    assert ended(labelled(tmp_path / "one", {"lima": 10, "kyoto": 10}), groups=GROUPS)[:2] == ("trouble", "groups")


def test_sums_per_group_need_min_tables_of_three(tmp_path):
    detail = ended(labelled(tmp_path, min_tables=2), groups=GROUPS)[2]
    assert detail == "sums per group need min_tables of 3 or more, site.toml has 2"


def test_copies_of_a_table_hide_nobody(tmp_path):
    consortium = labelled(tmp_path, min_tables=3)
    for k in (3, 5, 7, 9, 11):
        consortium.patient("oslo", k).write_bytes(consortium.patient("oslo", 1).read_bytes())
    assert "different tables in group 'patient': 1, the least is 3" in ended(consortium, groups=GROUPS)[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('groups = ["a"]\n', "expected names, 2 at least"),
        ('groups = ["a", "b", "c"]\n', "expected two names, got 3"),
        ('groups = ["a", "b"]\nmissing_nodes = "allow"\n', "the sum over a group is over these few"),
        ('groups = ["a", "b"]\n[learn]\nmethod = "fedavg"\n', "exact optimum, which 'fedavg' does not give"),
        ('groups = ["a", "b"]\n[learn]\nmethod = "pooled"\n', "exact optimum"),
        ('groups = ["a", "b"]\n[learn]\nmethod = "independent"\nsolver = "gradient"\n', "exact optimum"),
        ('groups = ["a", "b"]\n[privacy]\nepsilon = 1.0\ndelta = 1e-5\nmin_samples = 20\n', "without noise"),
    ],
)
def test_what_a_study_with_groups_cannot_be(text, said):
    with pytest.raises(ParameterError, match=said):
        parse_study(f'name = "a"\nnodes = ["a", "b", "c"]\n{text}'.encode(), source="study.toml")


def test_a_masked_study_cannot_compare_groups(tmp_path):
    with pytest.raises(ParameterError, match="beside the masks that are to hide its term"):
        Consortium(tmp_path, patients=PATIENTS).masked_run(groups=GROUPS)


# --- differences of answers -------------------------------------------------------------------------------------------


def test_a_patient_whose_label_changes_between_two_runs_is_not_given_away(tmp_path):
    consortium = labelled(tmp_path)
    assert ended(consortium, groups=GROUPS)[0] == "done"
    assert ended(consortium, groups=GROUPS)[0] == "done"  # the same sums once more
    label(consortium, "oslo", {"private-oslo-0": "patient"})
    how, code, detail = ended(consortium, groups=GROUPS)
    assert (how, code) == ("trouble", "unapproved")
    assert "answers for this one show 1 table by themselves" in detail
    assert ended(consortium)[0] == "done"  # without groups, the sum is over all as before
    assert ended(consortium, groups=GROUPS)[1] == "unapproved"
    label(consortium, "oslo")
    assert ended(consortium, groups=GROUPS)[0] == "done"


def test_without_the_ledger_the_difference_would_be_the_patients_graph(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.federation.site.gate.Gate.check_difference", lambda *args: None)
    consortium, totals = labelled(tmp_path), []
    for labels in ({}, {"private-oslo-0": "patient"}):
        label(consortium, "oslo", labels)
        run = consortium.run(INDEPENDENT, groups=GROUPS)
        compared = consortium.finish(run) / "compare"
        counts = json.loads((compared / "compare.json").read_text())["counts"]
        totals.append(counts[0] * dense(read_graph(compared / "first" / "graph.npz")))
    graph = read_run(consortium.folder / "oslo" / "results" / run.run_id).graphs["private-oslo-0"]
    assert np.allclose(totals[1] - totals[0], dense(graph), atol=1e-10)


def test_groups_of_another_study_are_told_apart_from_those_of_the_first(tmp_path):
    consortium = labelled(tmp_path, dict.fromkeys(SITES, 40))
    third = ["patient"] * 10 + ["control"] * 10 + ["other"] * 17 + ["rare"] * 3

    def names(site):
        return sorted(path.stem for path in (consortium.folder / site / "tables").glob("*.csv"))

    for site in SITES:
        label(consortium, site, dict(zip(names(site), third, strict=True)))
    assert ended(consortium, INDEPENDENT, groups=GROUPS)[0] == "done"
    how, code, detail = ended(consortium, INDEPENDENT, groups='["patient", "other"]')  # the rest would be the rare ones
    assert (how, code) == ("trouble", "unapproved")
    assert "answers for this one show 3 tables by themselves" in detail


@pytest.mark.parametrize(("add", "allowed"), [(1, False), (6, False), (10, True)])
def test_patients_who_come_are_as_many_in_each_group_as_min_tables(tmp_path, add, allowed):
    consortium = labelled(tmp_path)
    assert ended(consortium, groups=GROUPS)[0] == "done"
    for number in range(add):
        consortium.add_patient("oslo", 50 + number)
    label(consortium, "oslo")
    how, code, _ = ended(consortium, groups=GROUPS)
    assert (how == "done", code == "unapproved") == (allowed, not allowed)


def test_a_few_patients_of_a_group_that_was_told_cannot_be_taken_out_by_a_study_without_groups(tmp_path):
    consortium = labelled(tmp_path)
    assert ended(consortium, groups=GROUPS)[0] == "done"
    for number in (0, 2, 4, 6, 1):
        consortium.patient("oslo", number).unlink()
    label(consortium, "oslo")
    how, code, detail = ended(consortium)
    assert (how, code) == ("trouble", "unapproved")
    assert "1 table by themselves" in detail


def test_a_label_that_changes_during_a_run_stops_it(tmp_path):
    consortium = labelled(tmp_path)
    run = consortium.run(EXACT, policy=STOP, groups=GROUPS)

    def tamper(site, data, service):
        if open_message(data, consortium.trust).head.get("round") == 2:
            raise Killed
        return service(data)

    services = consortium.services()
    with pytest.raises(Killed):
        consortium.run_attempt(run, Loopback(services, tamper))
    close(services)
    label(consortium, "oslo", {"private-oslo-0": "patient"})
    services = consortium.services()
    outcome = consortium.run_attempt(open_run(run.folder), Loopback(services))
    close(services)
    assert (outcome.ended, outcome.troubles[0]["code"]) == ("trouble", "data-changed")
