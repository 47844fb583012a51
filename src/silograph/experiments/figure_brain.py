"""Figure: brain graphs of both groups in three views, shared edges red, edges of the group only blue.

Where every region's place is known, the views are projections of the brain: through nilearn, which draws the head
around them, if it is installed. Otherwise the regions stand on a circle.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from scipy.spatial.distance import squareform

from silograph._types import Matrix, Vector
from silograph.datasets.regions import region_centres
from silograph.experiments.brains import BrainStudy, subjects_of
from silograph.experiments.drawing import BLUE, RED, draw_graph, edge_legend, panels, styled
from silograph.experiments.outcome import Outcome, Picture
from silograph.experiments.session import Session
from silograph.experiments.table5 import LAM, NU, studies

TITLE = "Brain graphs of two groups (ABIDE)"
VIEWS = {"Sagittal": (1, 2), "Axial": (0, 1), "Coronal": (0, 2)}  # which of x, y, z are drawn
HEADS = {"Sagittal": "l", "Axial": "z", "Coronal": "y"}  # nilearn's names of them
STRONGEST = 150  # edges drawn of each graph: more hide each other


def run(session: Session) -> Outcome:
    """Each group's mean graph; an edge is shared where the consensus has it."""
    (result,) = studies(session, [(NU, LAM)], "exact")
    regions = subjects_of(
        BrainStudy(method="exact", nu=NU, lam=LAM, recipe=session.recipe, subjects=session.scale.subjects,
                   path=session.abide)
    ).regions  # fmt: skip
    first, shared = result["is_autistic"], result["consensus"] > session.recipe.threshold
    groups = {
        "Controls": strongest(result["weights"][~first].mean(axis=0)),
        "Autism": strongest(result["weights"][first].mean(axis=0)),
    }
    centres = region_centres(regions)
    with styled():
        if centres is None:
            figure, axes = panels(1, 2, width=7, height=3.8)
            for ax, (group, w) in zip(axes, groups.items(), strict=True):
                draw_graph(ax, _circle(len(regions)), w, shared=shared, node_size=6)
                ax.set_title(group)
        else:
            figure, axes = panels(2, 3, width=9, height=5.6)
            for k, (group, w) in enumerate(groups.items()):
                for ax, (view, kept) in zip(axes[3 * k : 3 * k + 3], VIEWS.items(), strict=True):
                    if find_spec("nilearn") is None:
                        draw_graph(ax, centres[:, kept], w, shared=shared, node_size=6, widest=1.2)
                    else:
                        _draw_in_head(figure, ax, centres, w, shared, view)
                    ax.set_title(f"{group}: {view.lower()}")
        edge_legend(figure, shared="in the consensus graph", own="in this group's graphs only")
    caption = f"The {STRONGEST} strongest edges of each group's mean graph (exact, ν = {NU:g}, λ = {LAM:g})."
    return Outcome(pictures=(Picture(name="figure-brain", title=TITLE, caption=caption, figure=figure),))


def strongest(w: Vector, n_edges: int = STRONGEST) -> Vector:
    """The same graph with its strongest edges only."""
    bar = np.sort(w)[-min(n_edges, w.size)]
    return np.where((w >= bar) & (w > 0), w, 0.0)


def _circle(n_nodes: int) -> Matrix:
    angle = 2 * np.pi * np.arange(n_nodes) / n_nodes
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _draw_in_head(figure: Figure, axes: Axes, centres: Matrix, w: Vector, shared: np.ndarray, view: str) -> None:
    """The same within the outline of a head, by nilearn."""
    from nilearn.plotting import plot_glass_brain

    head = plot_glass_brain(None, display_mode=HEADS[view], figure=figure, axes=axes, annotate=False)
    for chosen, color, dash in ((~shared, BLUE, (0, (2, 1))), (shared, RED, "solid")):
        of_kind = squareform(np.where(chosen, w, 0.0))
        if of_kind.any():
            head.add_graph(
                of_kind, centres, node_color="#222222", node_size=4, edge_cmap=ListedColormap([color]), edge_vmin=0,
                edge_vmax=float(w.max()), edge_kwargs={"linewidth": 0.7, "linestyle": dash, "alpha": 0.9},
            )  # fmt: skip
