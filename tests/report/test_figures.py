"""Figures: one file each, the same every time, names as text."""

from xml.etree import ElementTree

import pytest

from silograph.errors import ParameterError
from silograph.report import write_figures
from testing.made_runs import study_run, table_run

pytest.importorskip("matplotlib")


def test_a_run_has_six_figures_and_they_are_always_the_same(tmp_path):
    folder = study_run(tmp_path / "run")
    written = write_figures(folder, tmp_path / "a")
    names = {"graphs", "matrices", "degrees", "contributions", "similarity", "convergence"}
    assert {path.stem for path in written} == names
    for path, again in zip(written, write_figures(folder, tmp_path / "b"), strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_names_are_text_in_a_figure(tmp_path):
    folder = study_run(tmp_path / "run", silos=("<b>&oslo", "$x^2$ lima"))
    contributions = next(path for path in write_figures(folder, tmp_path / "out") if path.stem == "contributions")
    texts = [node.text for node in ElementTree.parse(contributions).iter() if node.text]
    assert "<b>&oslo" in texts
    assert "$x^2$ lima" in texts


def test_one_table_has_what_one_table_can_have(tmp_path):
    written = write_figures(table_run(tmp_path / "run"), tmp_path / "out", formats=("png",))
    assert {path.name for path in written} == {"graphs.png", "matrices.png", "degrees.png"}


def test_a_brain_has_a_figure_of_its_own(tmp_path):
    places = tmp_path / "places.csv"
    places.write_text("name,x,y,z\n" + "".join(f"node{k},{k},{2 * k},{-k}\n" for k in range(12)))
    folder = study_run(tmp_path / "run")
    written = write_figures(folder, tmp_path / "out", formats=("pdf",), coordinates=places)
    assert (tmp_path / "out" / "brain.pdf") in written


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="svg, pdf, png"):
        write_figures(study_run(tmp_path / "run"), tmp_path / "out", formats=("jpeg",))
