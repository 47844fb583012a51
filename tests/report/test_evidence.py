"""What the page says of stability, of the coupling and of the degree, and how it shows which edges are stable."""

import numpy as np
import pytest

from silograph.report import write_report
from silograph.report.evidence import coupling_of
from silograph.report.measures import first_threshold
from silograph.runs.reader import read_run
from testing.browser import Look, launched
from testing.made_runs import study_run, table_run
from testing.pages import data_of, words_of

HALVES = 20
SILOS = ("oslo", "lima", "kyoto")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = study_run(tmp_path_factory.mktemp("stable") / "run", halves=HALVES, absent={"lima": ("node3", "node7")})
    write_report(made)
    return made


@pytest.fixture(scope="module")
def browser():
    with launched() as one:
        yield one


@pytest.fixture(scope="module")
def opened(browser, folder):
    one = Look(browser, folder / "report.html")
    yield one
    one.close()


@pytest.fixture
def look(opened):
    """The page as it came up; after each test, nothing has complained."""
    opened.page.evaluate("""() => { byId("hide").checked = false; byId("bar").value = halves.percent;
        choose(null); setThreshold(0); setBar(halves.percent, false); showGraph(run.graphs[1]);
        Object.assign(table, { query: "", sort: "weight", down: true }); drawTable(); }""")
    yield opened
    assert opened.complaints == []
    assert opened.outward() == []


def stability(run, silo):
    graph = run.main if silo is None else run.graphs[silo]
    return run.stability.columns(silo, graph)["stability"]


def set_bar(look, percent, *, hide=False):
    look.page.evaluate(
        """([percent, hide]) => { byId("bar").value = percent; byId("bar").dispatchEvent(new Event("input"));
        if (byId("hide").checked !== hide) byId("hide").click(); }""",
        [percent, hide],
    )


def drawn(look, view, kind):
    return look.page.evaluate(f"views[{view}].cy.edges('.{kind}').length")


def test_the_page_has_the_columns_of_the_runs_own_tables(folder):
    data, run = data_of(folder / "report.html"), read_run(folder)
    for graph, silo in zip(data["graphs"], (None, *SILOS), strict=True):
        assert list(graph["columns"]) == ["stability", "mean_weight", "low", "high"]
        assert graph["columns"]["stability"] == stability(run, silo).tolist()
    assert [silo["stable"] for silo in data["silos"]] == [silo.stable_edges for silo in run.silos]


def test_the_strongest_edges_of_a_large_graph_keep_their_own_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("silograph.report.payload.MOST_EDGES_IN_PAGE", 20)
    folder = study_run(tmp_path / "run", silos=("oslo",), halves=HALVES)
    graph, run = data_of(write_report(folder))["graphs"][1], read_run(folder)
    known = dict(zip(run.graphs["oslo"].weights.tolist(), stability(run, "oslo").tolist(), strict=True))
    assert graph["columns"]["stability"] == [known[weight] for weight in graph["weights"]]


def test_the_bounds_are_those_of_the_run(folder):
    told, basis = data_of(folder / "report.html")["stability"], read_run(folder).stability.false_edges(None)
    assert (told["percent"], told["halves"], told["bounds"][0]) == (90, HALVES, None)
    for percent in (1, 60, 90, 100):
        assert told["bounds"][percent] == pytest.approx(basis.bound(percent / 100), rel=5e-3)


def test_whether_to_trust_it_is_answered_by_half_samples_too(folder):
    run = read_run(folder)
    words, told = words_of(run), run.record.stability
    counts = (
        f"{told.stable_edges} of {run.main.n_edges} edges of the consensus were found in at least 90% of half-samples"
    )
    assert counts in words
    assert f"({HALVES}, each with half of every silo's rows)" in words
    assert told.says in words


def test_one_table_is_halved_by_its_rows(tmp_path):
    run = read_run(table_run(tmp_path / "run", halves=HALVES))
    words = words_of(run)
    assert f"of {run.main.n_edges} edges were found in at least 90% of half-samples" in words
    assert "each with half of the rows)" in words


def test_a_quorum_is_told(tmp_path):
    def change(record):
        record["stability"] |= {"quorum": 2, "quorum_edges": 7}

    words = words_of(read_run(study_run(tmp_path / "run", halves=HALVES, change=change)))
    assert "7 edges are that stable in at least 2 silos" in words


def test_graphs_that_are_the_strongest_edges_say_so_and_are_shown_whole(folder, tmp_path):
    run = read_run(folder)
    assert "so that each node has 4 neighbours on average; the whole optimum has 9.3." in words_of(run)
    assert "Rank edges by weight" not in words_of(run)
    assert first_threshold(run) == 0
    assert first_threshold(read_run(study_run(tmp_path / "other", more=6))) > 0


def test_a_run_without_half_samples_says_nothing_of_them(tmp_path):
    folder = study_run(tmp_path / "run")
    data = data_of(write_report(folder))
    assert data["stability"] is None
    assert data["coupling"] is None
    assert all(graph["columns"] == {} for graph in data["graphs"])
    assert "half-sample" not in words_of(read_run(folder))
    assert "strongest edges of the optimum" not in words_of(read_run(folder))


@pytest.mark.parametrize(
    ("losses", "chosen", "said"),
    [
        ({0.0: 2.0, 0.2: 1.0, 0.35: 3.0}, 0.2646, "is 0.26. The least loss on rows that were held out is at 0.2;"),
        ({0.0: 1.0, 0.2: 4.0, 0.35: 5.0}, 0.0866, "is 0.087. The least loss on rows that were held out is where silos"),
    ],
)  # fmt: skip
def test_the_coupling_says_what_was_chosen_and_why(tmp_path, losses, chosen, said):
    def change(record):
        curve = [{"coupling": coupling, "loss": loss} for coupling, loss in losses.items()]
        record["result"] |= {"coupling_curve": curve, "coupling": chosen}

    told = coupling_of(read_run(study_run(tmp_path / "run", change=change)))
    assert told["least"] == min(losses, key=losses.get)
    assert (told["tried"], told["losses"], told["chosen"]) == ([*losses], [*losses.values()], chosen)
    assert said in told["says"]


# --- in a browser -----------------------------------------------------------------------------------------------------


def test_a_reader_sees_at_once_which_edges_are_stable(look, folder):
    run = read_run(folder)
    for view, silo in ((0, None), (1, "oslo")):
        stable = int((stability(run, silo) >= 0.9 - 1e-9).sum())
        assert (drawn(look, view, "firm"), drawn(look, view, "unstable")) == (stable, 0)
        assert drawn(look, view, "faint") == stability(run, silo).size - stable
    told = run.record.stability
    sentence = f"{told.stable_edges} of {told.edges} edges of the consensus were found in at least 90% of half-samples."
    assert look.text("#stability-says") == sentence
    assert f"{told.stable_edges} of {told.edges} edges in ≥ 90%" in look.text("#stable-badge")


@pytest.mark.parametrize("percent", [0, 50, 55, 73, 95, 100])
def test_the_slider_tells_and_hides(look, folder, percent):
    run = read_run(folder)
    set_bar(look, percent, hide=True)
    counts = [int((stability(run, silo) >= percent / 100 - 1e-9).sum()) for silo in (None, "oslo")]
    assert look.text("#stability-says").startswith(
        f"{counts[0]} of {run.main.n_edges} edges of the consensus were found"
    )
    assert f"Of oslo: {counts[1]} of " in look.text("#silo-stability-says")
    for view, count in enumerate(counts):
        visible = f"views[{view}].cy.edges().filter(edge => edge.visible()).length"
        look.page.wait_for_function(f"count => {visible} === count", arg=count, timeout=10_000)
    assert look.text("#main-count").startswith(f"{counts[0]} of {run.main.n_edges} edges")
    status = f"{counts[1]} edge{'' if counts[1] == 1 else 's'} of oslo, found in at least {percent}% of half-samples"
    look.page.wait_for_function("text => byId('table-status').textContent.startsWith(text)", arg=status, timeout=10_000)
    cells = "matrixOf(main).reduce((sum, row) => sum + [...row].filter(value => value > 0).length, 0)"
    assert look.page.evaluate(cells) == 2 * counts[0]
    look.page.wait_for_function(
        "text => byId('degrees-says').textContent.includes(text)", arg=f"at least {percent}%", timeout=10_000
    )


def test_both_sliders_count(look, folder):
    run = read_run(folder)
    set_bar(look, 80, hide=True)
    look.page.evaluate("setThreshold(0.1)")
    kept = (run.main.weights >= 0.1) & (stability(run, None) >= 0.8 - 1e-9)
    assert look.text("#main-count").startswith(f"{kept.sum()} of ")
    assert look.page.evaluate("views[0].cy.edges().filter(edge => edge.visible()).length") == kept.sum()


def test_edges_that_are_not_stable_are_grey_in_the_matrix(look, folder):
    grey = look.page.evaluate(
        "unstableCells(main, matrixOf(main)).map(row => [...row].filter(value => value > 0).length)"
    )
    assert sum(grey) == 2 * int((stability(read_run(folder), None) < 0.9 - 1e-9).sum())
    assert len(look.page.evaluate("byId('matrix-main').data.map(trace => trace.type)")) == 2
    assert "grey are those found in less than 90%" in look.text("#matrix-says")
    set_bar(look, 90, hide=True)
    look.page.wait_for_function("() => byId('matrix-main').data.length === 1", timeout=10_000)


def test_the_table_sorts_by_stability_and_tells_the_interval(look, folder):
    run = read_run(folder)
    look.page.click("[data-column=stability]")
    shown = [float(text.strip("%")) for text in look.page.locator("#edges-table td.part").all_inner_texts()]
    assert shown == sorted(100 * stability(run, "oslo").round(2), reverse=True)[: len(shown)]
    unsure = look.page.locator("#edges-table tr.unsure td.part").all_inner_texts()
    assert all(float(text.strip("%")) < 90 for text in unsure)
    assert " to " in look.page.locator("#edges-table tbody tr").first.inner_text()


@pytest.mark.parametrize("graph", ["consensus", "oslo", "lima"])
def test_the_download_is_still_the_runs_own_table(look, folder, tmp_path, graph):
    look.page.select_option("#table-graph", label=graph)
    set_bar(look, 100, hide=True)
    with look.page.expect_download() as waiting:
        look.page.click("#download")
    waiting.value.save_as(tmp_path / "edges.csv")
    place = folder / "consensus" if graph == "consensus" else folder / "silos" / graph
    assert (tmp_path / "edges.csv").read_bytes() == (place / "edges.csv").read_bytes()


def test_the_slider_and_its_box_are_reached_and_moved_by_keyboard(look):
    look.page.focus("#bar")
    look.page.keyboard.press("ArrowRight")
    assert look.text("#bar-text") == "91%"
    assert look.page.get_attribute("#bar", "aria-valuetext") == "91 percent of half-samples"
    assert "in at least 91% of half-samples" in look.text("#legend")
    look.page.keyboard.press("Tab")
    look.page.keyboard.press("Space")
    assert drawn(look, 0, "faint") == 0
    assert drawn(look, 0, "unstable") > 0


def test_neighbours_and_hovering_tell_how_often_an_edge_was_found(look, folder):
    run = read_run(folder)
    look.page.fill("#find", "node5")
    node = run.main.names.index("node5")
    touching = (run.main.rows == node) | (run.main.cols == node)
    listed = look.page.locator("#neighbours ul").first.locator("li")
    assert listed.count() == touching.sum()
    assert all("found in" in text for text in listed.all_inner_texts())
    assert f"found in {100 * stability(run, None)[0]:.0f}% of half-samples" in look.page.evaluate("edgeText(main, 0)")


def test_the_curve_of_the_coupling_marks_the_least_and_the_chosen(look):
    assert look.page.locator("#coupling-section").is_visible()
    assert "The coupling is 0.5. The least loss on rows that were held out is at 0.7" in look.text("#coupling-says")
    curve, marks = look.page.evaluate(
        "[byId('coupling').data[0].x, byId('coupling').layout.annotations.map(one => [one.text, one.x])]"
    )
    assert curve == [0, 0.2, 0.35, 0.7, 1.2]
    assert marks == [["chosen", 0.5], ["least loss", 0.7]]
    labelled = look.page.evaluate("apart([0, .05, .1, .17, .3, .5, .8, 1.2])")  # the others would lie on these
    assert labelled == [0, 0.1, 0.3, 0.5, 0.8, 1.2]


def test_a_page_without_half_samples_has_no_place_for_them(browser, tmp_path):
    look = Look(browser, write_report(study_run(tmp_path / "run")))
    for hidden in ("#stability", "#stable-badge", "#coupling-section"):
        assert look.page.locator(hidden).is_hidden()
    assert look.page.locator("[data-column=stability]").count() == 0
    assert "half-sample" not in look.text("main")
    assert look.page.evaluate("views[0].cy.edges('.firm, .faint').length") == 0
    assert look.complaints == []
    look.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_one_table_with_half_samples_has_a_page_of_any_width(browser, tmp_path, width):
    folder = table_run(tmp_path / "run", halves=HALVES)
    look = Look(browser, write_report(folder), width=width, height=844)
    assert look.text("#stability-says").endswith("edges were found in at least 90% of half-samples.")
    assert "consensus" not in look.text("#stability")
    assert look.page.locator("#silo-stability-says").is_hidden()
    assert look.page.evaluate("document.documentElement.scrollWidth") <= width
    assert look.complaints == []
    look.close()


def test_five_hundred_nodes_answer_at_once(browser, tmp_path):
    look = Look(browser, write_report(study_run(tmp_path / "run", n_nodes=500, more=3, halves=HALVES)))
    look.page.evaluate("setThreshold(0)")
    times = look.page.evaluate(
        """() => [60, 95, 70, 100, 80].map(percent => {
            const start = performance.now();
            byId("bar").value = percent;
            byId("bar").dispatchEvent(new Event("input"));
            return performance.now() - start;
        })"""
    )
    assert np.median(times) < 200
    assert look.complaints == []
    look.close()
