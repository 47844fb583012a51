"""The page: one file, its data safe whatever nodes are called, its words true."""

import html
import json
import re
import time

import numpy as np
import pytest

from silograph.analysis.overlap import overlaps
from silograph.cli.report import formats_of, write_page
from silograph.errors import OutputError, ParameterError
from silograph.graph.graph import Graph
from silograph.report import write_report
from silograph.report.measures import on_all_nodes
from silograph.report.page import LIBRARIES, OURS, as_json, asset
from silograph.report.palette import BLUE, RED
from silograph.report.reading import percent, scientific
from silograph.runs.learn import learn_files
from silograph.runs.reader import read_run
from testing.made_runs import federated, study_run, table_run, without
from testing.pages import data_of, words_of

EVIL = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "<!--", '"&quot;,', "a\u2028b", "='1+1"]


def test_the_page_holds_the_runs_numbers(tmp_path):
    folder = study_run(tmp_path / "run")
    data, run = data_of(write_report(folder)), read_run(folder)
    assert data["graphs"][0]["weights"] == run.main.weights.tolist()
    assert [graph["name"] for graph in data["graphs"]] == ["consensus", "oslo", "lima", "kyoto"]
    assert data["nodes"] == list(run.names)


def test_the_same_run_gives_the_same_page(tmp_path):
    folder = study_run(tmp_path / "run")
    first = write_report(folder, tmp_path / "a.html").read_bytes()
    assert write_report(folder, tmp_path / "b.html").read_bytes() == first


def test_names_cannot_become_markup(tmp_path):
    folder = study_run(tmp_path / "run", names=EVIL, silos=("oslo", "<b>lima<b>"))
    text = write_report(folder, title="</title><script>").read_text("utf-8")
    assert data_of(folder / "report.html")["nodes"] == EVIL
    ends = len(re.findall("</script", text, re.IGNORECASE))
    assert ends == 1 + len(LIBRARIES) + 1  # data, libraries, ours
    body = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "alert" not in body
    assert "<b>lima" not in body


def test_json_is_safe_inside_an_element_and_reads_back():
    text = as_json(EVIL)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == EVIL


def test_a_policy_forbids_every_request(tmp_path):
    text = write_report(study_run(tmp_path / "run")).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_no_script_could_end_its_element():
    for name in (*LIBRARIES, *OURS):
        assert "</script" not in asset(name).lower()
        assert "<!--" not in asset(name)


def test_libraries_come_with_their_licences():
    for name in ("cytoscape", "plotly", "nilearn"):
        assert "opyright" in asset(f"vendor/{name}.LICENSE")


def test_ten_silos_of_a_hundred_nodes_take_little(tmp_path):
    folder = study_run(tmp_path / "run", n_nodes=100, silos=[f"site{k}" for k in range(10)], more=30)
    started = time.process_time()
    page = write_report(folder)
    assert time.process_time() - started < 5
    assert page.stat().st_size < 6e6


def test_of_more_edges_than_a_page_can_hold_the_strongest_stay_and_all_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.report.payload.MOST_EDGES_IN_PAGE", 20)
    folder = study_run(tmp_path / "run", silos=("oslo",))
    graph, whole = data_of(write_report(folder))["graphs"][1], read_run(folder).graphs["oslo"]
    assert sorted(graph["weights"]) == sorted(whole.weights.tolist())[-10:]
    assert graph["total"] == whole.n_edges > 10


def test_the_reading_tells_who_differs_and_who_is_near(tmp_path):
    words = words_of(read_run(study_run(tmp_path / "run")))
    assert "kyoto is nearest to the consensus" in words
    assert "certifies the optimum of the model, not that every edge is true" in words
    for silo in ("oslo", "lima", "kyoto"):
        assert f"{silo}: " in words


def test_the_reading_tells_of_what_is_kept_fused_or_not_converged(tmp_path):
    def change(record):
        record["silos"][0] |= {"graph_shared": False}
        record["silos"][1] |= {"is_consensus": True, "contribution": None}
        record["result"] |= {"converged": False, "relative_gap": 0.25}

    words = words_of(read_run(study_run(tmp_path / "run", change=change)))
    assert "oslo keeps its graph to itself" in words
    assert "lima fused with the consensus" in words
    assert "was not met" in words


def test_a_method_without_a_certificate_is_not_trusted(tmp_path):
    def change(record):
        record["result"] |= {"converged": None, "relative_gap": None}
        record["parameters"]["method"] = "fedavg"

    folder = study_run(tmp_path / "run", change=change)
    assert "has no certificate" in words_of(read_run(folder))
    assert data_of(write_report(folder))["verdict"] == {"good": None, "text": "no certificate"}


def test_sites_that_answered_with_sums_are_counted_in_the_title(tmp_path):
    def change(record):
        for silo in record["silos"]:
            silo["n_silos"] = 6

    folder = study_run(tmp_path / "run", change=change)
    n_sites = len(read_run(folder).silos)
    assert data_of(write_report(folder))["subtitle"].startswith(f"{6 * n_sites} silos of {n_sites} sites, ")


def test_the_answers_name_silos_that_did_not_observe_all_nodes(tmp_path):
    def change(record):
        record["silos"][0]["missing_nodes"] = ["a"]

    run = read_run(study_run(tmp_path / "run", change=change))
    assert f"Not all nodes were observed by {run.silos[0].name}: " in words_of(run)


def test_doubts_come_first_and_the_verdict_is_not_good(tmp_path):
    def change(record):
        record["warnings"] = {"scale": "Mean squared differences …", "degree": "A mean degree of 3.5 was not found …"}

    folder = study_run(tmp_path / "run", change=change)
    data = data_of(write_report(folder))
    assert data["doubts"] == ["Mean squared differences …", "A mean degree of 3.5 was not found …"]
    assert data["verdict"]["good"] is False
    assert data["verdict"]["text"].endswith("1 doubt about the data, see below")
    assert "Not before the doubts" in words_of(read_run(folder))


def test_what_is_about_computing_alone_leaves_the_verdict_as_it_is(tmp_path):
    folder = study_run(tmp_path / "run", change=lambda record: record["warnings"].update(degree="not found"))
    assert data_of(write_report(folder))["verdict"]["good"] is True
    assert data_of(write_report(table_run(tmp_path / "table")))["doubts"] == []


def test_what_a_silo_lacks_is_not_shown_as_no_edge(tmp_path):
    lacks = {"lima": ("node3", "node7")}
    folder = study_run(tmp_path / "run", absent=lacks)
    data = data_of(write_report(folder))
    assert [graph["absent"] for graph in data["graphs"]] == [[], [], [3, 7], []]
    assert [silo["missing"] for silo in data["silos"]] == [[], ["node3", "node7"], []]
    lima, known = data["graphs"][2], read_run(folder).graphs["lima"]
    assert known.names == tuple(f"node{k}" for k in range(12) if k not in (3, 7))
    ends = [(data["nodes"][i], data["nodes"][j]) for i, j in zip(lima["rows"], lima["cols"], strict=True)]
    assert ends == [edge[:2] for edge in known.edges()]


def test_two_graphs_are_compared_on_the_nodes_that_both_have(tmp_path):
    run = on_all_nodes(read_run(study_run(tmp_path / "run")))
    whole, part = run.main, run.graphs["oslo"]
    touched = np.isin(whole.rows, [2, 5]) | np.isin(whole.cols, [2, 5])
    cut = Graph.from_edges(whole.names, whole.rows[~touched], whole.cols[~touched], whole.weights[~touched])
    assert overlaps([whole, cut])[0, 1] < 1
    assert overlaps([whole, cut], [[], [2, 5]])[0, 1] == pytest.approx(1)
    kept = without(part, ["node2", "node5"]), without(cut, ["node2", "node5"])
    assert overlaps([part, cut], [[], [2, 5]])[0, 1] == pytest.approx(overlaps(kept)[0, 1])


@pytest.mark.parametrize("n_silos", [60, 1000])
def test_a_page_of_many_silos_tells_of_all_and_draws_the_farthest(tmp_path, n_silos):
    names = [f"p{k:03d}" for k in range(n_silos)]
    folder = study_run(tmp_path / "run", n_nodes=30, silos=names, change=lambda data: data["silos"].reverse())
    page = write_report(folder)
    data = data_of(page)
    assert page.stat().st_size < 4e6
    assert len(data["silos"]) == n_silos
    assert len(data["graphs"]) == len(data["similarity"]["names"]) == 61
    assert {silo["name"] for silo in data["silos"] if silo["drawn"]} == set(names[:60])  # those of the least γ


def test_silos_are_told_by_site(tmp_path):
    def change(record):
        for silo, site in zip(record["silos"], ("north", "north", "south"), strict=True):
            silo["site"] = site

    data = data_of(write_report(study_run(tmp_path / "run", change=change)))
    assert [silo["site"] for silo in data["silos"]] == ["north", "north", "south"]
    assert data["subtitle"].startswith("3 silos of 2 sites, 12 nodes")


@pytest.mark.parametrize(("part", "said"), [(0, "0%"), (0.001, "less than 1%"), (0.5, "50%"), (0.999, "more than 99%")])
def test_a_part_is_not_rounded_to_nothing_or_all(part, said):
    assert percent(part) == said


def test_small_numbers_are_written_as_people_do():
    assert scientific(5.6e-7) == "5.6·10⁻⁷"
    assert scientific(1e-6) == "10⁻⁶"


def test_a_federation_is_shown(tmp_path):
    def change(record):
        federated(record, left_out={"quito": "no answer"}, attempts=2)

    records = data_of(write_report(study_run(tmp_path / "run", change=change)))["record"]
    rows = dict(next(part["rows"] for part in records if part["title"] == "Federation"))
    assert rows["left out"] == "quito: no answer"
    assert rows["attempts"] == "2"


def test_coordinates_place_the_nodes_and_a_third_makes_a_brain(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.report.page.write_spatial", lambda graph, space, out: None)
    folder = study_run(tmp_path / "run")
    places = tmp_path / "places.csv"
    places.write_text("name,x,y,z\n" + "".join(f"node{k},{k},{2 * k},{-k}\n" for k in range(12)))
    data = data_of(write_report(folder, coordinates=places))
    assert data["layout"]["space"][3] == [3, 6, -3]
    assert set(data["outlines"]) == {"Sagittal", "Axial", "Coronal"}
    places.write_text("name,x,y\n" + "".join(f"node{k},{k},{2 * k}\n" for k in range(12)))
    data = data_of(write_report(folder, coordinates=places))
    assert data["layout"]["space"] is None
    assert data["layout"]["places"][11] == [0.75, 1.0]


def test_a_page_with_a_brain_has_the_notice_of_its_outlines_and_no_other_page_has(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.report.page.write_spatial", lambda graph, space, out: None)
    folder, places = study_run(tmp_path / "run"), tmp_path / "places.csv"
    notice = html.escape(asset("vendor/nilearn.LICENSE"))
    for axes, has_brain in (("x,y,z", True), ("x,y", False)):
        rows = "".join(f"node{k}{f',{k}' * len(axes.split(','))}\n" for k in range(12))
        places.write_text(f"name,{axes}\n{rows}")
        text = write_report(folder, coordinates=places).read_text(encoding="utf-8")
        assert (notice in text, "{{notice}}" in text) == (has_brain, False)
        assert ("The nilearn developers" in text) == has_brain


def test_the_page_has_the_colours_of_the_figures(tmp_path):
    text = write_report(study_run(tmp_path / "run")).read_text(encoding="utf-8")
    assert f"--red: {RED}; --blue: {BLUE};" in text


def test_a_name_that_looks_like_a_mark_of_the_page_stays_text(tmp_path):
    names = ["{{scripts}}", "{{notice}}", "{{style}}", *(f"node{k}" for k in range(3, 12))]
    assert data_of(write_report(study_run(tmp_path / "run", names=names)))["nodes"] == names


def test_the_command_says_where_things_are(tmp_path):
    folder = study_run(tmp_path / "run")
    said = write_page(folder, tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").is_file()
    assert "page.html" in said[0]


def test_a_folder_is_no_page(tmp_path):
    with pytest.raises(OutputError, match=r"report\.html"):
        write_report(study_run(tmp_path / "run"), tmp_path)


def test_formats_are_those_known():
    assert formats_of("svg, PNG") == ("svg", "png")
    assert formats_of(None) == ()
    with pytest.raises(ParameterError, match="svg, pdf, png"):
        formats_of("jpeg")


def test_what_noise_promises_is_on_the_page(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("oslo", "lima", "kyoto"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(50, 5)))
    learn_files(sorted(tmp_path.glob("*.npy")), method="oneshot", epsilon=1, delta=1e-5, out=tmp_path / "run")
    page = data_of(write_report(tmp_path / "run"))
    answers = {answer["question"]: " ".join(answer["sentences"]) for answer in page["reading"]}
    assert "the optimum for numbers with noise" in answers["Can I trust it?"]
    assert "publish the consensus, not this page" in answers["What may be published?"]
    shown = json.dumps(page, ensure_ascii=False)
    assert "ε = 1, δ = 1e-05 for a row; σ₁ = 4.045, ρ = 0.03055" in shown
    assert "publishing them is outside the guarantee" in shown
    assert "sums: masked; epsilon: 1; delta: 1e-05" in shown
