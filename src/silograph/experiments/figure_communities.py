"""Figure: the communities in graphs of images (COIL-20), objects as markers."""

import numpy as np
from matplotlib.axes import Axes

from silograph._util.types import Matrix, Vector
from silograph.datasets.locate import COIL20, locate
from silograph.experiments.grids import learn_point
from silograph.experiments.images import NMI, agreement, communities, draw_objects, silos_of, views_of
from silograph.experiments.outcome import Outcome, Picture
from silograph.experiments.recipe import CONTENDERS
from silograph.experiments.session import Session
from silograph.experiments.table4 import learn_and_choose
from silograph.report.drawing import GREY, LOOKS, draw_edges, panels, styled, without_frame
from silograph.report.palette import BLUE

TITLE = "Communities in graphs of images (COIL-20)"
SHOWN = (("IGL", "view2"), ("FedAvg", "view2"), ("PPGL-L", "view2"), ("PPGL-C", None))
METHODS = {"IGL": "igl", "FedAvg": "fedavg", "PPGL-L": "ppgl", "PPGL-C": "ppgl"}
SEED = 0


def run(session: Session) -> Outcome:
    """Four graphs of the first draw, in the paper's choice: of the second view, and the consensus."""
    found = learn_and_choose(session)
    recipe, chosen = found.recipe, found.chosen
    objects = draw_objects(SEED)
    views = views_of(objects, locate(COIL20, session.coil))
    silos = silos_of(views)
    with styled():
        figure, axes = panels(1, 4, width=10, height=2.9)
        for ax, (row, silo) in zip(axes, SHOWN, strict=True):
            study = learn_point(silos, CONTENDERS[METHODS[row]], recipe, chosen[row].point)
            w = study.consensus if silo is None else study.graphs[silo]
            nmi = agreement(communities(w, recipe.threshold), views.labels)[NMI]
            _draw(ax, w, views.labels, recipe.threshold)
            ax.set_title(f"{row}{'' if silo is None else ' of view 2'}: NMI {nmi:.2f}")
    caption = (
        f"Graphs of 48 images of objects {', '.join(str(number + 1) for number in objects)}: a ring and a marker for "
        "each object, poses in order around it. Colours are the communities found; edges between objects are blue. "
        "Every method at the parameters of Table IV, distances in units of their mean."
    )
    return Outcome(pictures=(Picture(name="figure-communities", title=TITLE, caption=caption, figure=figure),))


def _draw(axes: Axes, w: Vector, labels: np.ndarray, threshold: float) -> None:
    objects = list(dict.fromkeys(labels.tolist()))
    places = ring_places(labels)
    rows, cols = np.triu_indices(labels.size, 1)
    found, community = w > threshold, communities(w, threshold)
    for kind, color in ((labels[rows] == labels[cols], GREY), (labels[rows] != labels[cols], BLUE)):
        draw_edges(axes, places, found & kind, color)
    for node, label in enumerate(labels.tolist()):
        color, marker = LOOKS[community[node] % len(LOOKS)]["color"], LOOKS[objects.index(label)]["marker"]
        x, y = places[node]
        axes.scatter(x, y, s=20, color=color, marker=marker, zorder=2, linewidths=0)
    axes.set_aspect("equal")
    without_frame(axes)


def ring_places(labels: np.ndarray) -> Matrix:
    """Each object's images on a ring in the order of poses, the rings on a circle."""
    objects = list(dict.fromkeys(labels.tolist()))
    places = np.empty((labels.size, 2))
    for number, label in enumerate(objects):
        members = np.flatnonzero(labels == label)
        around = 2 * np.pi * (number + 0.5) / len(objects)
        turn = 2 * np.pi * np.arange(members.size) / members.size
        places[members] = 1.6 * np.array([np.cos(around), np.sin(around)]) + np.column_stack(
            [np.cos(turn), np.sin(turn)]
        )
    return places
