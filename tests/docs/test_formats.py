"""The reference pages of files are held to the code: every key, default, column and code is there, and no other."""

import csv
import json
import re
import sqlite3
import tomllib
from contextlib import closing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import silograph
from silograph.errors import ParameterError
from silograph.federation import study_file
from silograph.federation.coordinator.history import EventKind, History
from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.refusals import PASSING, REASONS
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.federation.study_file import Policy, parse_study
from silograph.methods.common.registry import built_in
from silograph.methods.common.settings import StudySettings
from silograph.privacy.settings import Privacy
from silograph.runs.comparison_files import NUMBERS, ComparisonRecord
from silograph.runs.sums_comparison import SUMS_NUMBERS, SumsRecord
from testing.consortium import Consortium, Loopback, close

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one that is not below it."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    level = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert level is not None, f"{page} has no heading {heading!r}"
    rest = text[level.end() :]
    following = re.search(rf"^#{{1,{len(level[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    heads = {number - 1 for number, line in enumerate(lines) if re.fullmatch(r"[|\s-]+", line)}
    return [
        row for number, row in enumerate(cells) if number not in heads and not re.fullmatch(r"[|\s-]+", lines[number])
    ]


def keys(text: str) -> list[str]:
    """The names in the first cells of all tables, in order."""
    return [name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])]


def written(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def check_defaults(text: str, kind: type) -> None:
    """The last cell in backticks is the dataclass's default; words stand for None and for what is computed."""
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(kind)
    }
    for row in rows(text):
        (name,) = re.findall(r"`([^`]+)`", row[0])
        shown = re.fullmatch(r"`([^`]+)`", row[-1])
        if defaults[name] is MISSING:
            assert row[-1] == "required", name
        elif shown is None:
            assert defaults[name] in (None, (), {}) or (name == "methods" and row[-1] == "all"), name
        else:
            assert shown[1] == written(defaults[name]), name


# --- study.toml ----------------------------------------------------------------------------------------------------


def test_the_study_file_has_these_keys_at_the_top():
    assert keys(section("study-file.md", "At the top")) == list(study_file.TOP_KEYS)
    for row in rows(section("study-file.md", "At the top")):
        (name,) = re.findall(r"`([^`]+)`", row[0])
        given = {"name": b'name = "a"\n', "nodes": b'nodes = ["a", "b"]\n'}
        if row[-1] == "required":
            with pytest.raises(ParameterError, match=f"expected a key {name}"):
                parse_study(b"".join(line for key, line in given.items() if key != name), source="study")
        elif (shown := re.fullmatch(r"`([^`]+)`", row[-1])) is not None:
            study = parse_study(b"".join(given.values()), source="study")
            assert written(getattr(study.settings if name == "missing_nodes" else study, name)) == shown[1]


def test_the_study_file_has_these_settings():
    text = section("study-file.md", "`[learn]`")
    # Whether nodes may be missing is said at the top, and privacy has a table of its own
    elsewhere = ("missing_nodes", "privacy")
    assert keys(text) == [field.name for field in fields(StudySettings) if field.name not in elsewhere]
    check_defaults(text, StudySettings)
    assert set(re.findall(r"`([^`]+)`", rows(text)[0][1])) == set(built_in())


def test_the_study_file_has_this_privacy():
    text = section("study-file.md", "`[privacy]`")
    assert keys(text) == [field.name for field in fields(Privacy)]
    check_defaults(text, Privacy)


def test_the_study_file_has_this_policy():
    text = section("study-file.md", "`[policy]`")
    assert keys(text) == [field.name for field in fields(Policy)]
    check_defaults(text, Policy)


def test_the_study_of_the_page_is_one():
    (shown,) = re.findall(r"```toml\n(.*?)```", (REFERENCE / "study-file.md").read_text(encoding="utf-8"), re.DOTALL)
    study = parse_study(shown.encode(), source="study-file.md")
    assert study.policy.needed(3) == 2
    tutorial = (REFERENCE.parent / "tutorials" / "federation.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", tutorial, re.DOTALL)
    assert parse_study(shown.encode(), source="tutorial").policy.needed(3) == 3


def test_the_limits_of_a_study_are_those_of_the_page():
    given = 'name = "{name}"\nnodes = ["{node}", "b"]\nsites = ["{site}", "b"]\n[policy]\ntimeout = {timeout}\n'
    usual = {"name": "a" * 80, "node": "a" * 200, "site": "a" * 40, "timeout": 30 * 24 * 3600}
    limits = {row[0]: row[1] for row in rows(section("federation.md", "Limits"))}
    assert limits["a study's name"] == "80 characters"
    assert limits["a node's name"] == "200 characters"
    assert limits["a site's name"] == "40 characters"
    assert limits["`timeout` of a study"] == "30 days"
    assert limits["`study.toml`"] == "1 MB"
    parse_study(given.format(**usual).encode(), source="study")
    beyond = {"name": "a" * 81, "node": "a" * 201, "site": "a" * 41, "timeout": 30 * 24 * 3600 + 1}
    for name, value in beyond.items():
        with pytest.raises(ParameterError):
            parse_study(given.format(**usual | {name: value}).encode(), source="study")
    with pytest.raises(ParameterError, match="1 MB"):
        parse_study(given.format(**usual).encode().ljust(1_000_001), source="study")


# --- site.toml and refusals ----------------------------------------------------------------------------------------


def test_the_sites_file_has_these_keys_and_defaults(tmp_path):
    required = {"name": "oslo", "federation": "trial", "server": "localhost", "data": Path("oslo.csv")}
    chosen = {"key": "signals", "header": True, "keep_rows": "good", "person": "subject"}
    chosen |= {"groups": Path("people.csv"), "groups_column": "diagnosis"}
    limits = {"min_samples": 20, "epsilon_total": 1.0, "sums_total": 1}
    path = write_site(tmp_path, SiteSettings(**required, **chosen, **limits))
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    sections = {name: table for name, table in found.items() if isinstance(table, dict)}
    headings = {"At the top": {key: value for key, value in found.items() if key not in sections}}
    headings |= {f"`[{name}]`": table for name, table in sections.items()}
    assert set(headings) == {"At the top", "`[table]`", "`[limits]`", "`[notify]`"}
    for heading, table in headings.items():
        text = section("site-file.md", heading)
        assert keys(text) == list(table)
        check_defaults(text, SiteSettings)
    assert {key for table in headings.values() for key in table} == {field.name for field in fields(SiteSettings)}


def test_the_codes_of_refusals_are_those_of_the_code():
    table = rows((REFERENCE / "refusals.md").read_text(encoding="utf-8"))
    assert [row[0].strip("`") for row in table] == list(REASONS)
    assert {row[0].strip("`") for row in table if row[-1].startswith("yes")} == PASSING


# --- what a run leaves ---------------------------------------------------------------------------------------------


def test_the_tables_of_the_history_are_those_of_the_page(tmp_path):
    path = tmp_path / "history.sqlite"
    History(path).close()
    told: dict[str, list[str]] = {}
    for row in rows(section("federation.md", "history.sqlite")):
        told.setdefault(row[0].strip("`"), []).append(row[1].strip("`"))
    assert list(told) == ["rounds", "sites", "events"]
    with closing(sqlite3.connect(path)) as database:
        for table, columns in told.items():
            assert columns == [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
    kinds = next(row[2] for row in rows(section("federation.md", "history.sqlite")) if row[1] == "`kind`")
    assert set(re.findall(r"`([^`]+)`", kinds)) == set(get_args(EventKind))


def first_parts(folder: object, path: Path) -> set[str]:
    """What a class that owns the paths of a folder has directly in it."""
    places = [getattr(place, "path", place) for place in vars(folder).values()]
    return {place.relative_to(path).parts[0] for place in places if isinstance(place, Path) and place != path}


@pytest.mark.parametrize(
    ("kind", "heading"), [(FederationFolder, "The federation's folder"), (SiteFolder, "The site's folder")]
)
def test_every_file_of_a_folder_is_on_the_page(kind, heading):
    told = {name.split("/")[0] for name in keys(section("federation.md", heading).split("\n### ")[0])}
    assert first_parts(kind(Path("folder")), Path("folder")) <= told


def tables(folder: Path) -> list[Path]:
    rng, common = np.random.default_rng(0), np.random.default_rng(1).normal(size=(8, 8))
    paths = [folder / f"{name}.npy" for name in ("oslo", "lima", "kyoto")]
    for path in paths:
        np.save(path, rng.normal(size=(60, 8)) @ (common + 0.3 * rng.normal(size=(8, 8))))
    return paths


def finished_run(consortium: Consortium) -> Path:
    """The results of a study between sites that a call reaches."""
    run, services = consortium.run(), {site: consortium.service(site) for site in consortium.sites}
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    assert outcome.ended == "done", outcome
    return run.folder / "results"


def check_record(record: dict) -> None:
    """Every key of a record is on the page, and none is on the page that a record does not have."""
    page = section("run-folder.md", "run.json")
    top = page.split("\n### ")[0]
    assert {row[0].strip("`") for row in rows(top)} == set(record)
    assert str(record["format"]) in next(row[1] for row in rows(top) if row[0] == "`format`")
    assert {row[0].strip("`") for row in rows(section("run-folder.md", "result"))} == set(record["result"])
    for silo in record["silos"]:
        assert {row[0].strip("`") for row in rows(section("run-folder.md", "silos"))} == set(silo)
    for version in record["versions"]:
        assert f"`{version}`" in next(row[1] for row in rows(top) if row[0] == "`versions`")
    known = set(re.findall(r"`([^`]+)`", section("run-folder.md", "parameters")))
    assert set(record["parameters"]) <= known | set(keys(section("study-file.md", "`[learn]`")))
    if record["privacy"] is not None:
        told = [name.strip("`") for row in rows(section("run-folder.md", "privacy")) for name in row[0].split(", ")]
        assert set(told) == set(record["privacy"])
    if record["signs"] is not None:
        assert {row[0].strip("`") for row in rows(section("run-folder.md", "signs"))} == set(record["signs"])
    if record["federation"] is not None:
        assert {row[0].strip("`") for row in rows(section("run-folder.md", "federation"))} == set(record["federation"])


def test_every_key_of_a_real_record_is_on_the_page(tmp_path):
    paths = tables(tmp_path)
    silograph.learn_files(paths[0], out=tmp_path / "one")
    silograph.learn_files(paths, degree=3, out=tmp_path / "several")
    silograph.learn_files(paths, method="oneshot", epsilon=1, delta=1e-5, out=tmp_path / "noisy")
    federated = finished_run(Consortium(tmp_path / "consortium"))
    kinds = set()
    for folder in (tmp_path / "one", tmp_path / "several", tmp_path / "noisy", federated):
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        check_record(record)
        kinds.add((record["kind"], record["federation"] is None))
    assert kinds == {("table", True), ("silos", True), ("silos", False)}


def test_every_file_of_a_real_run_is_on_the_page(tmp_path):
    paths = tables(tmp_path)
    silograph.learn_files(paths[0], out=tmp_path / "one")
    silograph.learn_files(paths, degree=3, out=tmp_path / "several")
    text = (REFERENCE / "run-folder.md").read_text(encoding="utf-8")
    named = {name.rstrip("/") for name in keys(text.split("\n## ")[0])}
    for folder in ("one", "several"):
        assert {entry.name for entry in (tmp_path / folder).iterdir()} <= named | {"silos"}
    graph = np.load(tmp_path / "one" / "graph.npz")
    told = {row[0].strip("`"): row[1] for row in rows(section("run-folder.md", "Graphs"))}
    assert {name: graph[name].dtype for name in ("rows", "cols", "weights")} == {
        name: np.dtype(told[name].split(",")[0]) for name in ("rows", "cols", "weights")
    }
    assert set(graph.files) == set(told)
    columns = (tmp_path / "one" / "edges.csv").read_text(encoding="utf-8").splitlines()[0]
    assert columns == "source,target,weight,partial_correlation"


def test_every_column_and_step_of_the_history_of_every_method_is_on_the_page(tmp_path):
    paths = tables(tmp_path)
    told = section("run-folder.md", "history.csv")
    columns, steps = set(keys(told)), next(row[1] for row in rows(told) if row[0] == "`step`")
    seen: set[str] = set()
    for method in built_in():
        out = tmp_path / method
        silograph.learn_files(paths, method=method, degree=3, out=out)
        with (out / "history.csv").open(encoding="utf-8", newline="") as file:
            history = list(csv.DictReader(file))
        assert set(history[0]) <= columns, method
        assert all(f"`{row['step']}`" in steps for row in history), method
        seen |= set(history[0])
    assert seen == columns


def test_the_files_of_a_real_run_and_the_fields_of_its_audit_log_are_on_the_page(tmp_path):
    run = finished_run(Consortium(tmp_path)).parent
    named = {
        re.sub(r"\.G/|/", "", name) for name in keys(section("federation.md", "A run's folder at the coordinator"))
    }
    assert {re.sub(r"\.1$", "", entry.name) for entry in run.iterdir() if "sqlite-" not in entry.name} <= named
    told = set(keys(section("federation.md", "The audit log")))
    lines = (tmp_path / "oslo" / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert {name for line in lines for name in json.loads(line)} <= told
    whats = next(row[1] for row in rows(section("federation.md", "The audit log")) if row[0] == "`what`")
    assert {json.loads(line)["what"] for line in lines} <= set(re.findall(r"`([^`]+)`", whats))
    for folder in (tmp_path / "oslo" / "results").iterdir():
        assert re.fullmatch(r"[0-9a-f]{16}\.1", folder.name)  # RUN.G, as the pages say


def test_the_files_and_keys_of_a_comparison_are_listed():
    told = section("run-folder.md", "compare")
    files = ["compare.html", "edges.csv", "graphs.csv", "first/", "second/", "difference/", "compare.json"]
    record = [field.name for field in fields(ComparisonRecord)]
    heads = ["compare.json"]  # of the last table
    listed = [key for key in keys(told) if key not in heads]
    assert sorted(listed) == sorted([*(name for name in files if name not in heads), *NUMBERS, *record])


def test_the_files_and_keys_of_a_comparison_between_sites_are_listed():
    record = [field.name for field in fields(SumsRecord)]
    files = ["edges.csv", "first/", "second/", "compare.json"]
    assert sorted(keys(section("run-folder.md", "compare between sites"))) == sorted([*files, *SUMS_NUMBERS, *record])
