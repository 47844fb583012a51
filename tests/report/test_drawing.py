"""Figures: the same bytes for the same numbers, text that stays text, and manners towards the caller."""

import re
import struct
import zlib

import matplotlib as mpl
import numpy as np
import pytest

from silograph.experiments.figure_brain import strongest
from silograph.experiments.figure_sizes import standard_error
from silograph.report.drawing import GREY, LOOKS, draw_bars, draw_graph, panels, save, styled
from silograph.report.palette import BLUE, RED


def some_figure():
    with styled():
        figure, axes = panels(1, 2, width=4, height=2)
        rng = np.random.default_rng(0)
        draw_graph(axes[0], rng.random((6, 2)), rng.random(15), shared=rng.random(15) > 0.5, threshold=0.3)
        draw_bars(axes[1], ["C1", "C2"], {"IGL": np.array([0.5, 0.6])}, {"IGL": np.array([0.1, 0.1])})
        axes[1].set_title("Räume ν = 2")
    return figure


def test_the_same_figure_is_the_same_file(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        save(some_figure(), tmp_path / folder, "figure")
    for suffix in (".svg", ".png"):
        one, two = ((tmp_path / folder / f"figure{suffix}").read_bytes() for folder in ("one", "two"))
        assert one == two


def test_text_stays_text_and_no_date_is_written(tmp_path):
    svg, png = save(some_figure(), tmp_path, "figure")
    text = svg.read_text(encoding="utf-8")
    assert re.search(r"<text[^>]*>Räume ν = 2</text>", text)
    assert "<dc:date>" not in text
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert b"Software" not in data
    length, kind = struct.unpack(">I4s", data[8:16])
    assert kind == b"IHDR"
    assert zlib.crc32(data[12 : 16 + length]) == struct.unpack(">I", data[16 + length : 20 + length])[0]
    assert struct.unpack(">II", data[16:24]) == (800, 400)  # 200 dots per inch


def test_the_caller_s_settings_are_left_as_they_were(tmp_path):
    with mpl.rc_context({"font.size": 17, "svg.fonttype": "path"}):
        before = dict(mpl.rcParams)
        save(some_figure(), tmp_path, "figure")
        assert dict(mpl.rcParams) == before


def test_the_caller_s_settings_do_not_change_a_figure(tmp_path):
    for folder, settings in (("plain", {}), ("own", {"lines.linewidth": 9, "axes.facecolor": "black"})):
        (tmp_path / folder).mkdir()
        with mpl.rc_context(settings):
            save(some_figure(), tmp_path / folder, "figure")
    plain, own = ((tmp_path / folder / "figure.svg").read_bytes() for folder in ("plain", "own"))
    assert plain == own


def test_no_figure_stays_open(tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    save(some_figure(), tmp_path, "figure")
    assert plt.get_fignums() == before


@pytest.mark.parametrize("has_shared", [True, False])
def test_edges_above_the_threshold_are_drawn_once_in_the_colour_of_their_kind(has_shared, rng):
    w = np.array([0.5, 0.0, 0.2, 0.005, 0.3, 0.1])
    shared = np.array([True, True, False, True, False, True]) if has_shared else None
    _, (axes,) = panels(1, 1, width=2, height=2)
    draw_graph(axes, rng.random((4, 2)), w, shared=shared, threshold=0.01)
    drawn = {
        mpl.colors.to_hex(lines.get_color()[0]): len(lines.get_segments())
        for lines in axes.collections
        if isinstance(lines, mpl.collections.LineCollection)
    }
    assert drawn == ({BLUE: 2, RED: 2} if has_shared else {GREY: 4})


def test_edges_join_the_places_of_their_nodes_and_are_as_wide_as_heavy(rng):
    places, w = rng.random((3, 2)), np.array([0.2, 0.0, 0.4])
    _, (axes,) = panels(1, 1, width=2, height=2)
    draw_graph(axes, places, w, widest=2.0)
    lines = axes.collections[0]
    np.testing.assert_allclose(lines.get_segments(), [places[[0, 1]], places[[1, 2]]])
    thin, wide = lines.get_linewidths()
    assert thin < wide == 2.0


def test_a_graph_without_edges_can_be_drawn(rng, tmp_path):
    figure, (axes,) = panels(1, 1, width=2, height=2)
    draw_graph(axes, rng.random((4, 2)), np.zeros(6), shared=np.zeros(6, dtype=bool))
    save(figure, tmp_path, "empty")


def test_looks_differ_in_greyscale_in_dash_or_marker():
    assert len({look["marker"] for look in LOOKS}) == len(LOOKS)
    assert len({look["color"] for look in LOOKS}) == len(LOOKS)


def test_the_strongest_edges_are_kept_and_no_others():
    w = np.array([0.1, 0.5, 0.0, 0.3, 0.4])
    np.testing.assert_array_equal(strongest(w, 2), [0, 0.5, 0, 0, 0.4])
    np.testing.assert_array_equal(strongest(w, 99), w)
    np.testing.assert_array_equal(strongest(np.zeros(4), 2), np.zeros(4))


def test_the_standard_error_of_one_value_is_drawn_as_none(rng):
    values = rng.random((8, 3))
    np.testing.assert_allclose(standard_error(values), values.std(axis=0, ddof=1) / np.sqrt(8))
    np.testing.assert_array_equal(standard_error(values[:1]), np.zeros(3))
