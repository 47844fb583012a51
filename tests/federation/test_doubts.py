"""A site in other units is noticed: by what sites tell, or else by the range that the study gives."""

import json

import numpy as np
import pytest

from silograph.report import write_report
from testing.consortium import NODES, SITES, Consortium, Loopback, close

ONESHOT = 'method = "oneshot"\ndegree = 3'


def multiply(consortium, site, factor):
    """Let a site have recorded in another unit."""
    path = consortium.table(site)
    signals = factor * np.loadtxt(path, delimiter=",", skiprows=1)
    np.savetxt(path, signals, "%.17g", ",", header=",".join(NODES), comments="")


def record_of(results):
    return json.loads((results / "run.json").read_text("utf-8"))


def test_sites_tell_their_scale_and_one_in_other_units_is_named(tmp_path):
    consortium = Consortium(tmp_path)
    multiply(consortium, "lima", 1000)
    results = consortium.finish(consortium.run())
    record = record_of(results)
    told = {silo["name"]: silo["mean_squared_difference"] for silo in record["silos"]}
    signals = np.loadtxt(consortium.table("lima"), delimiter=",", skiprows=1)
    expected = np.mean([(signals[:, i] - signals[:, j]) ** 2 for i in range(8) for j in range(i)])
    assert told["lima"] == pytest.approx(expected)
    assert "'lima' (" in record["warnings"]["scale"]
    assert "'oslo' (" not in record["warnings"]["scale"]
    assert '"good":false' in write_report(results).read_text("utf-8")


def test_graphs_that_stay_at_their_sites_are_doubted_by_what_sites_tell_of_them(tmp_path):
    consortium = Consortium(tmp_path, share_graph=False)
    multiply(consortium, "lima", 1e-3)
    said = record_of(consortium.finish(consortium.run("degree = 4")))["warnings"]
    assert "every pair in 'lima' is an edge" in said["complete"]
    assert "'lima' (" in said["apart"]
    assert "most others fused with it" in said["apart"]


def test_nothing_is_said_of_sites_in_the_same_units(tmp_path):
    consortium = Consortium(tmp_path)
    assert record_of(consortium.finish(consortium.run()))["warnings"] == {}


def test_standardised_sites_may_be_in_any_units(tmp_path):
    consortium = Consortium(tmp_path)
    multiply(consortium, "lima", 1000)
    assert record_of(consortium.finish(consortium.run(standardize="true")))["warnings"] == {}


def test_a_site_that_keeps_its_numbers_tells_no_scale(tmp_path):
    consortium = Consortium(tmp_path, report=False)
    multiply(consortium, "lima", 1000)
    record = record_of(consortium.finish(consortium.run()))
    assert [silo["mean_squared_difference"] for silo in record["silos"]] == [None] * 3
    assert "scale" not in record["warnings"]


@pytest.mark.parametrize("learn", ['method = "exact"\ndegree = 3', ONESHOT])
@pytest.mark.parametrize("factor", [1000, 1e-3])
def test_a_site_outside_the_studys_range_refuses_before_anything_leaves(tmp_path, learn, factor):
    consortium = Consortium(tmp_path)
    multiply(consortium, "lima", factor)
    transport = Loopback(consortium.services())
    outcome = consortium.run_attempt(consortium.run(learn, scale="[0.1, 10]"), transport)
    close(transport.services)
    assert outcome.ended == "trouble"
    (trouble,) = outcome.troubles
    assert trouble["site"] == "lima"
    assert "outside the range that the study gives" in trouble["reason"]
    log = [json.loads(line) for line in (tmp_path / "lima" / "audit.jsonl").read_text("utf-8").splitlines()]
    assert any("the study says 0.1 to 10" in entry.get("detail", "") for entry in log)  # the number stays in its log
    assert not any("left" in entry for entry in log)
    assert "0.1 to 10" not in str(outcome)


def test_within_the_range_all_goes_on_to_the_same_bits(tmp_path):
    consortium = Consortium(tmp_path)
    free, held = (consortium.finish(consortium.run(**more)) for more in ({}, {"scale": "[0.1, 10]"}))
    for part in ("consensus", *(f"silos/{site}" for site in SITES)):
        assert (free / part / "edges.csv").read_bytes() == (held / part / "edges.csv").read_bytes()
