"""Doubtful silos are noticed wherever one learns: in Python, on the command line, in the record, on the page."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from silograph import ConsensusGraph, DoubtfulSilosWarning, learn_files
from silograph.cli.app import app
from silograph.datasets import make_silos
from silograph.report import write_report

NAMES = ("oslo", "lima", "kyoto", "quito")


def clean(n_samples=120, n_nodes=20, seed=0):
    made = make_silos(n_silos=len(NAMES), n_nodes=n_nodes, n_samples=n_samples, seed=seed)
    return dict(zip(NAMES, made.signals.values(), strict=True))


def correlated(x, r=0.95):
    out = x.copy()
    for t in range(1, len(x)):
        out[t] = r * out[t - 1] + np.sqrt(1 - r**2) * x[t]
    return out


def in_other_units(silos):
    return silos | {"lima": 1000 * silos["lima"]}


def given_twice(silos):
    return silos | {"copy": silos["lima"].astype(np.float32)}


def few(silos):
    return silos | {"lima": silos["lima"][:8]}


def flat(silos):
    return {name: x[:9] for name, x in silos.items()}


def series(silos):
    return {name: correlated(x) for name, x in silos.items()}


def unobserved(silos):
    return silos | {"lima": np.where(np.arange(20) == 3, 0.0, silos["lima"])}


CASES = [
    (in_other_units, "scale", ("lima",), "'lima' (2.", "standardize"),
    (given_twice, "duplicate", ("copy", "lima"), "'copy', 'lima'", "Keep one"),
    (few, "samples", ("lima",), "'lima' (8 samples for 20 nodes)", "chance"),
    (flat, "transposed", NAMES, "9 samples for 20 nodes", "other way round"),
    (series, "serial", NAMES, "'oslo', 'lima', 'kyoto', 'quito'", "independent"),
    (unobserved, "constant", ("lima",), "'lima' (", "let silos lack nodes"),
]
every_case = pytest.mark.parametrize(("spoil", "kind", "silos", "seen", "cure"), CASES)


@every_case
def test_python_warns_by_name(spoil, kind, silos, seen, cure):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ConsensusGraph(degree=4).fit(spoil(clean()))
    told = next(doubt for doubt in model.doubts_ if doubt.kind == kind)
    assert set(told.silos) == set(silos)
    assert seen in told.text
    assert cure in told.text
    said = [str(one.message) for one in caught if one.category is DoubtfulSilosWarning]
    assert said == [doubt.text for doubt in model.doubts_]


@every_case
def test_the_command_line_the_record_and_the_page_say_it_too(tmp_path, monkeypatch, spoil, kind, silos, seen, cure):
    monkeypatch.chdir(tmp_path)
    for name, x in spoil(clean()).items():
        np.save(f"{name}.npy", x)
    files = sorted(str(path) for path in Path().glob("*.npy"))
    result = CliRunner().invoke(app, ["learn", *files, "--degree", "4", "--out", "run"])
    assert result.exit_code == 0, result.output
    record = json.loads(Path("run/run.json").read_text("utf-8"))
    text = record["warnings"][kind]
    assert all(repr(name) in text for name in silos)
    assert cure in text
    assert f"Warning: {text}" in result.stderr
    page = write_report(Path("run")).read_text("utf-8")
    assert '"good":false' in page
    assert "about the data, see below" in page


@pytest.mark.parametrize("method", ["exact", "oneshot", "independent", "pooled", "mrmtl"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_of_silos_that_are_as_they_should_be(method, seed):
    assert ConsensusGraph(degree=4, method=method).fit(clean(seed=seed)).doubts_ == ()


@pytest.mark.filterwarnings("ignore::silograph.DoubtfulSilosWarning")
def test_standardised_silos_may_be_in_any_units():
    plain = ConsensusGraph(degree=4, standardize=True).fit(clean())
    mixed = ConsensusGraph(degree=4, standardize=True).fit(in_other_units(clean()))
    assert mixed.doubts_ == plain.doubts_ == ()
    np.testing.assert_allclose(mixed.consensus_, plain.consensus_, rtol=1e-6, atol=1e-9)


def test_the_same_file_and_the_same_numbers_in_another_format_are_the_same_data(tmp_path):
    for name, x in clean().items():
        np.savetxt(tmp_path / f"{name}.csv", x, delimiter=",", header=",".join(f"n{k}" for k in range(20)), comments="")
    shutil.copyfile(tmp_path / "oslo.csv", tmp_path / "again.csv")
    np.savetxt(
        tmp_path / "tabs.tsv", clean()["lima"], "%.9g", "\t", header="\t".join(f"n{k}" for k in range(20)), comments=""
    )
    run = learn_files(sorted([*tmp_path.glob("*.csv"), *tmp_path.glob("*.tsv")]), degree=4)
    assert "'again', 'oslo'" in run.warnings["duplicate"]
    assert "'lima', 'tabs'" in run.warnings["duplicate"]


def test_one_transposed_table_is_noticed(tmp_path):
    np.save(tmp_path / "brain.npy", clean()["oslo"].T)
    run = learn_files(tmp_path / "brain.npy", degree=4)
    assert "'brain' (20 samples for 120 nodes)" in run.warnings["transposed"]


@pytest.mark.parametrize("factor", [1000, 1e-3])
@pytest.mark.parametrize("coupling", [0.3, 0.5])
def test_a_silo_in_other_units_stands_apart_by_its_graph_alone(factor, coupling):
    silos = clean() | {"lima": factor * clean()["lima"]}
    with pytest.warns(DoubtfulSilosWarning):
        model = ConsensusGraph(degree=8, coupling=coupling).fit(silos)
    assert ("lima",) in [doubt.silos for doubt in model.doubts_ if doubt.kind in ("apart", "complete")]
