"""Figure: brain graphs of both groups in three views, shared edges red, edges of the group only blue.

Where every region's place is known, the views are projections of the brain: through nilearn, which draws the head
around them, if it is installed. Otherwise the regions stand on a circle.
"""

from importlib.util import find_spec
from itertools import product

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from scipy.spatial.distance import squareform

from silograph._util.types import Matrix, Vector
from silograph.datasets.regions import region_centres
from silograph.experiments.brains import subjects_of
from silograph.experiments.outcome import Outcome, Picture
from silograph.experiments.session import Session
from silograph.experiments.table5 import LAM, NU, studies, study_of
from silograph.report.brain import VIEWS
from silograph.report.drawing import draw_graph, edge_legend, panels, styled
from silograph.report.palette import BLUE, OWN_DASH, RED

TITLE = "Brain graphs of two groups (ABIDE)"
HEADS = {"Sagittal": "x", "Axial": "z", "Coronal": "y"}  # nilearn's names of the views
Groups = dict[str, Vector]  # name of a group to its mean graph
SHARED_DRAWN, OWN_DRAWN = 100, 50  # the strongest edges of each kind: more hide each other


def run(session: Session) -> Outcome:
    """Each group's mean graph; an edge is shared where the consensus has it."""
    (result,) = studies(session, [(NU, LAM)], "exact")
    regions = subjects_of(study_of(session)).regions
    first, shared = result["is_autistic"], result["consensus"] > session.recipe.threshold
    means = {"Controls": result["weights"][~first].mean(axis=0), "Autism": result["weights"][first].mean(axis=0)}
    groups = {
        group: strongest(np.where(shared, w, 0.0), SHARED_DRAWN) + strongest(np.where(shared, 0.0, w), OWN_DRAWN)
        for group, w in means.items()
    }
    centres = region_centres(regions)
    with styled():
        if centres is None:
            figure = _on_circles(groups, shared)
        elif find_spec("nilearn") is None:
            figure = _projected(groups, shared, centres)
        else:
            figure = _in_heads(groups, shared, centres)
        edge_legend(figure, shared="in the consensus graph", own="not in it, but in this group's mean graph")
    caption = (
        f"Each group's mean graph (exact, ν = {NU:g}, λ = {LAM:g}): the {SHARED_DRAWN} strongest edges that the "
        f"consensus has, and the {OWN_DRAWN} strongest that it has not."
    )
    if centres is not None and find_spec("nilearn") is None:
        caption += " Outlines of the head need nilearn: pip install 'silograph[paper]'."
    return Outcome(pictures=(Picture(name="figure-brain", title=TITLE, caption=caption, figure=figure),))


def strongest(w: Vector, n_edges: int) -> Vector:
    """The same graph with its strongest edges only."""
    bar = np.sort(w)[-min(n_edges, w.size)]
    return np.where((w >= bar) & (w > 0), w, 0.0)


def _on_circles(groups: Groups, shared: np.ndarray) -> Figure:
    figure, axes = panels(1, 2, width=7, height=3.8)
    for ax, (group, w) in zip(axes, groups.items(), strict=True):
        angle = 2 * np.pi * np.arange(squareform(w).shape[0]) / squareform(w).shape[0]
        draw_graph(ax, np.column_stack([np.cos(angle), np.sin(angle)]), w, shared=shared, node_size=6)
        ax.set_title(group)
    return figure


def _projected(groups: Groups, shared: np.ndarray, centres: Matrix) -> Figure:
    figure, axes = panels(2, 3, width=9, height=5.6)
    for ax, ((group, w), (view, kept)) in zip(axes, product(groups.items(), VIEWS.items()), strict=True):
        draw_graph(ax, centres[:, kept], w, shared=shared, node_size=6, widest=1.2)
        ax.set_title(f"{group}: {view.lower()}")
    return figure


def _in_heads(groups: Groups, shared: np.ndarray, centres: Matrix) -> Figure:
    """The same within the outlines of heads, by nilearn, which puts axes of its own over ours and knows no layout."""
    from nilearn.plotting import plot_glass_brain

    figure = Figure(figsize=(9, 5.8))
    for number, ((group, w), (view, _)) in enumerate(product(groups.items(), VIEWS.items())):
        row, column = divmod(number, len(VIEWS))
        left, bottom, width, height = column / 3, 0.53 - 0.46 * row, 1 / 3, 0.4
        ax = figure.add_axes((left, bottom, width, height))
        head = plot_glass_brain(None, display_mode=HEADS[view], figure=figure, axes=ax, annotate=False)
        for chosen, color, dash in ((~shared, BLUE, OWN_DASH), (shared, RED, "solid")):
            of_kind = squareform(np.where(chosen, w, 0.0))
            if of_kind.any():
                head.add_graph(
                    of_kind, centres, node_color="#222222", node_size=4, edge_cmap=ListedColormap([color]), edge_vmin=0,
                    edge_vmax=float(w.max()), edge_kwargs={"linewidth": 0.7, "linestyle": dash, "alpha": 0.9},
                )  # fmt: skip
        figure.text(left + width / 2, bottom + height + 0.01, f"{group}: {view.lower()}", ha="center", fontsize=9)
    return figure
