"""Figure: the communities in graphs of images (COIL-20), objects as markers."""

from __future__ import annotations

import networkx as nx
import numpy as np
from matplotlib.axes import Axes

from silograph._types import Matrix, Vector
from silograph.experiments.drawing import BLUE, GREY, LOOKS, draw_edges, panels, styled, without_frame
from silograph.experiments.grids import learned
from silograph.experiments.images import agreement, communities, drawn_objects, network, silos_of, views_of
from silograph.experiments.outcome import Outcome, Picture
from silograph.experiments.recipe import CONTENDERS
from silograph.experiments.session import Session
from silograph.experiments.table4 import choices, recipe_and_trials

TITLE = "Communities in graphs of images (COIL-20)"
SHOWN = (("IGL", "view2"), ("FedAvg", "view2"), ("PPGL-L", "view2"), ("PPGL-C", None))
METHODS = {"IGL": "igl", "FedAvg": "fedavg", "PPGL-L": "ppgl", "PPGL-C": "ppgl"}
SEED = 0


def run(session: Session) -> Outcome:
    """Four graphs of the first draw, in the paper's choice: of the second view, and the consensus."""
    recipe, _ = recipe_and_trials(session)
    chosen = choices(session)
    objects = drawn_objects(SEED)
    views = views_of(objects, session.coil)
    silos = silos_of(views)
    with styled():
        figure, axes = panels(1, 4, width=10, height=2.9)
        for ax, (row, silo) in zip(axes, SHOWN, strict=True):
            study = learned(silos, CONTENDERS[METHODS[row]], recipe, chosen[row].point)
            w = study.consensus if silo is None else study.graphs[silo]
            nmi = agreement(communities(w, recipe.threshold), views.labels)[0]
            _draw(ax, w, views.labels, recipe.threshold)
            ax.set_title(f"{row}{'' if silo is None else ' of view 2'}: NMI {nmi:.2f}")
    caption = (
        f"Graphs of 48 images of objects {', '.join(str(number + 1) for number in objects)}, each drawn by its own "
        "springs; a marker is an object. Edges between objects are blue. Every method at the parameters of Table IV."
    )
    return Outcome(pictures=(Picture(name="figure-communities", title=TITLE, caption=caption, figure=figure),))


def _draw(axes: Axes, w: Vector, labels: np.ndarray, threshold: float) -> None:
    places = spring_places(w, threshold)
    rows, cols = np.triu_indices(labels.size, 1)
    found = w > threshold
    for kind, color in ((labels[rows] == labels[cols], GREY), (labels[rows] != labels[cols], BLUE)):
        draw_edges(axes, places, found & kind, color)
    for number, label in enumerate(dict.fromkeys(labels.tolist())):
        x, y = places[labels == label].T
        look = LOOKS[number]
        axes.scatter(x, y, s=18, color=look["color"], marker=look["marker"], zorder=2, linewidths=0)
    without_frame(axes)


def spring_places(w: Vector, threshold: float) -> Matrix:
    """Where springs of the weights' strengths bring the nodes."""
    graph = network(w, threshold)
    places = nx.spring_layout(graph, weight="weight", seed=0, iterations=200)
    return np.array([places[node] for node in range(len(graph))])
