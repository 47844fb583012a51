"""silograph compare: what it writes, says and refuses; nothing is lost, and nothing is half written."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from silograph import learn_files, read_graph
from silograph.cli.app import app

FILES = {"compare.html", "compare.json", "difference", "edges.csv", "first", "graphs.csv", "second"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A run over twelve silos; in the first six, two nodes go together that do not in the others."""
    folder, rng = tmp_path_factory.mktemp("study"), np.random.default_rng(2)
    base = rng.normal(size=(7, 7))
    rows = ["silo,dx,age"]
    for number in range(12):
        signals = rng.normal(size=(150, 7)) @ base
        if number < 6:
            signals[:, 5] = signals[:, 0] + 0.1 * rng.normal(size=150)
        np.save(folder / f"p{number:02d}.npy", signals)
        rows.append(f"p{number:02d},{'patient' if number < 6 else 'control'},{30 + 7 * number % 11}")
    (folder / "people.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    learn_files(sorted(folder.glob("p*.npy")), coupling=0.3, whole=True, standardize=True, out=folder / "run")
    return SimpleNamespace(run=folder / "run", people=folder / "people.csv")


def compare(study, *options, people=None):
    command = ["compare", str(study.run), "--groups", str(people or study.people), "--column", "dx", *options]
    return CliRunner().invoke(app, command)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_changed_edge_is_found_written_and_told(study, tmp_path):
    out = tmp_path / "compare"
    result = compare(study, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == FILES
    record = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    assert record["first"] == "control"
    assert record["differing"] >= 1
    assert record["relabellings"] == record["possible"] == 924
    assert len(record["run_sha256"]) == len(record["groups_sha256"]) == 64
    best = rows_of(out / "edges.csv")[0]
    assert {best["source"], best["target"]} == {"0", "5"}
    assert float(best["p_family"]) == pytest.approx(2 / 924)
    assert float(best["difference"]) == pytest.approx(float(best["mean_first"]) - float(best["mean_second"]))
    assert float(best["low"]) <= float(best["effect"]) <= float(best["high"])
    assert [row["measure"] for row in rows_of(out / "graphs.csv")][:2] == ["edges", "weight"]
    assert read_graph(out / "first" / "graph.npz").n_nodes == 7
    assert read_graph(out / "difference" / "graph.graphml").weights.min() > 0
    assert float(rows_of(out / "difference" / "edges.csv")[0]["difference"]) != 0
    said = " ".join(result.output.split())
    assert record["says"] in said


def test_long_names_of_groups_cut_no_measure_short(study, tmp_path):
    people = tmp_path / "people.csv"
    text = study.people.read_text(encoding="utf-8")
    people.write_text(text.replace("patient", "Schizophrenia").replace("control", "Kontrollgruppe"), encoding="utf-8")
    command = ["compare", str(study.run), "--groups", str(people), "--column", "dx", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "80"})
    assert all(name in result.output for name in ("modularity", "similarity"))
    lines = [line for line in result.output.splitlines() if line[:1] in tuple("┏┃┡│└")]
    assert len(lines) > 20
    assert "…" not in "".join(lines)
    assert all(line.rstrip()[-1] in "┓┃┩│┘" for line in lines)


def test_json_is_the_record_and_the_default_place_is_in_the_run(study):
    result = compare(study, "--json", "--force", "--covariates", "age", "--permutations", "99", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout == (study.run / "compare" / "compare.json").read_text(encoding="utf-8")
    assert json.loads(result.stdout)["settings"]["covariates"] == ["age"]


def test_the_same_command_writes_the_same_tables(study, tmp_path):
    for name in ("one", "two"):
        compare(study, "--out", str(tmp_path / name), "--covariates", "age", "--permutations", "99", "--quiet")
    for name in ("edges.csv", "graphs.csv", "difference/graph.npz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_an_earlier_comparison_is_replaced_only_if_asked_and_other_things_never(study, tmp_path):
    out = tmp_path / "compare"
    assert compare(study, "--out", str(out)).exit_code == 0
    before = (out / "compare.json").read_bytes()
    refused = compare(study, "--out", str(out))
    assert refused.exit_code == 1
    assert "--force" in refused.output
    assert (out / "compare.json").read_bytes() == before
    assert compare(study, "--out", str(out), "--force", "--quiet").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    assert "other things" in compare(study, "--out", str(tmp_path / "mine"), "--force").output
    assert (tmp_path / "mine" / "notes.txt").read_text() == "kept"


def test_a_comparison_that_a_kill_left_aside_is_brought_back_before_anything_else(study, tmp_path):
    out = tmp_path / "compare"
    assert compare(study, "--out", str(out)).exit_code == 0
    aside = tmp_path / ".compare.old.killed"
    aside.mkdir()
    out.rename(aside / "compare")
    refused = compare(study, "--out", str(out))
    assert refused.exit_code == 1
    assert "--force" in refused.output
    assert {path.name for path in out.iterdir()} == FILES


def test_notes_beside_a_comparison_survive_a_kill_as_it_is_replaced(study, tmp_path, monkeypatch):
    out, replace = tmp_path / "compare", Path.replace
    assert compare(study, "--out", str(out)).exit_code == 0
    for name in ("notes.txt", "more.txt"):
        (out / name).write_text("kept")

    class Killed(BaseException):
        """A process ends here."""

    def killed(path, target):
        if path.suffix == ".txt" and list(out.glob("*.txt")):
            raise Killed
        return replace(path, target)

    again = ["compare", str(study.run), "--groups", str(study.people), "--column", "dx", "--out", str(out), "--force"]
    with monkeypatch.context() as some:
        some.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            CliRunner().invoke(app, again, catch_exceptions=False)
    assert len(list(out.glob("*.txt"))) == 1
    refused = compare(study, "--out", str(out))
    assert refused.exit_code == 1
    assert {path.name for path in out.iterdir()} == FILES | {"notes.txt", "more.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["compare"]


@pytest.mark.parametrize(
    ("change", "options", "code", "says"),
    [
        (("p11,", "p99,"), (), 1, "no silo that is called 'p99'"),
        (("dx", "dy"), (), 2, "column: expected a column"),
        (("control", "patient"), (), 1, "expected two groups, got 1"),
        (("", ""), ("--covariates", "sex"), 2, "covariates: expected a column"),
        (("", ""), ("--permutations", "3"), 2, "permutations"),
        (("", ""), ("--between", "control", "nobody"), 2, "between"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(study, tmp_path, change, options, code, says):
    people = tmp_path / "people.csv"
    people.write_text(study.people.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    result = compare(study, "--out", str(tmp_path / "out"), *options, people=people)
    assert result.exit_code == code, result.output
    assert says in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_names_of_groups_have_no_effect_on_a_terminal(study, tmp_path):
    people = tmp_path / "people.csv"
    text = study.people.read_text(encoding="utf-8").replace("patient", "\x1b[31mpatient\x1b]0;title\x07")
    people.write_text(text, encoding="utf-8")
    result = compare(study, "--out", str(tmp_path / "out"), people=people)
    assert result.exit_code == 0
    assert "\x1b[31m" not in result.output
    assert "\x1b]0" not in result.output
    assert "\\x1b[31mpatient" in result.output


def test_a_place_that_cannot_be_written_is_told_before_any_work(study, tmp_path):
    (tmp_path / "file").write_text("kept")
    result = compare(study, "--out", str(tmp_path / "file" / "out"), people=tmp_path / "nobody.csv")
    assert result.exit_code == 1
    assert "cannot be written" in result.output


def test_a_run_that_is_learned_anew_takes_its_comparison_along(tmp_path):
    rng = np.random.default_rng(0)
    tables = [tmp_path / f"{name}.npy" for name in "abcd"]
    for table in tables:
        np.save(table, rng.normal(size=(30, 5)))
    learn_files(tables, degree=2, coupling=0.5, out=tmp_path / "run")
    people = tmp_path / "people.csv"
    people.write_text("silo,dx\na,x\nb,x\nc,y\nd,y\n", encoding="utf-8")
    assert compare(SimpleNamespace(run=tmp_path / "run", people=people)).exit_code == 0
    assert (tmp_path / "run" / "compare" / "compare.json").is_file()
    learn_files(tables, degree=2, coupling=0.5, out=tmp_path / "run", force=True)
    assert not (tmp_path / "run" / "compare").exists()
