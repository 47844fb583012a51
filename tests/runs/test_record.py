"""A record says everything once, is read back as it was written, and names what is wrong with another."""

import json
from pathlib import Path

import pytest

from silograph.errors import GraphError
from silograph.runs.record import RunRecord, read_record
from testing.made_runs import federated, study_run, table_run


def data_of(folder):
    return json.loads((folder / "run.json").read_text())


def test_one_table_several_silos_and_a_federation_have_one_schema(tmp_path):
    table = data_of(table_run(tmp_path / "table"))
    silos = data_of(study_run(tmp_path / "silos"))
    federation = data_of(study_run(tmp_path / "federation", change=federated))
    assert list(table) == list(silos) == list(federation)
    assert table["result"].keys() == silos["result"].keys() == federation["result"].keys()
    assert table["silos"][0].keys() == silos["silos"][0].keys() == federation["silos"][0].keys()


@pytest.mark.parametrize("change", [None, federated])
def test_a_record_is_read_back_as_it_was_written(tmp_path, change):
    path = study_run(tmp_path / "run", change=change) / "run.json"
    record = read_record(path)
    assert RunRecord.from_json(record.to_json(), source=path) == record
    assert json.loads(record.to_json()) == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (("kind",), "photos", "kind: expected 'table' or 'silos', got 'photos'"),
        (("silos",), None, "silos: expected a list, got None"),
        (("silos", 1), 5, r"silos\[1\]: expected an object, got 5"),
        (("silos", 1, "edges"), "many", r"silos\[1\].edges: expected a whole number, got 'many'"),
        (("silos", 0, "is_consensus"), 1, r"silos\[0\].is_consensus: expected true or false, got 1"),
        (("result", "alpha"), True, "result.alpha: expected a number, got True"),
        (("result", "nodes"), None, "result.nodes: expected a whole number, got None"),
        (("versions", "numpy"), 2, "versions.numpy: expected a text, got 2"),
        (("federation",), {}, "federation.run: is missing"),
        (("parameters",), {"method": "exact"}, "parameters.tol: is missing"),
        (("parameters",), {"tol": 1e-6}, "parameters.method: is missing"),
        (("unheard_of",), 1, "unheard_of: is not known"),
        (("format",), 1, "in format 7, got 1. Run `silograph learn` again"),
        (("format",), 99, "in format 7, got 99. A newer silograph wrote it"),
    ],
)
def test_a_damaged_or_foreign_record_is_refused_by_file_and_key(tmp_path, where, value, says):
    path = study_run(tmp_path / "run") / "run.json"
    part = data = json.loads(path.read_text())
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    path.write_text(json.dumps(data))
    with pytest.raises(GraphError, match=f"run.json: .*{says}"):
        read_record(path)


def test_what_is_no_json_is_no_record():
    for text in ("", "[]", "{", '"run"', "\x00"):
        with pytest.raises(GraphError, match=r"run\.json"):
            RunRecord.from_json(text, source=Path("run.json"))
