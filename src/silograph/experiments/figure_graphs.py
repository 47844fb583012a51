"""Figure: the first silo's graph, true and as every method learns it."""

import numpy as np

from silograph.experiments.comparison import DRAWN_ROWS, format_point
from silograph.experiments.grids import learn_point
from silograph.experiments.outcome import Outcome, Picture
from silograph.experiments.recipe import CONTENDERS
from silograph.experiments.scenarios import SIZES
from silograph.experiments.selection import choose
from silograph.experiments.session import Session
from silograph.experiments.trials import draw, silos_of
from silograph.metrics import f_score
from silograph.report.drawing import draw_graph, edge_legend, panels, styled

TITLE = "Learned graphs of silo C1 (N = 100, q = 0.5)"
SEED = 0


def run(session: Session) -> Outcome:
    """Every method at the point it chose in Table I, on the first draw."""
    scenario, recipe = SIZES[-1], session.recipe
    (trials,) = session.trials(scenario)
    drawn = draw(scenario, SEED)
    silos = silos_of(drawn)
    truth, shared = drawn.graphs["C1"], drawn.consensus
    with styled():
        figure, axes = panels(2, 4, width=9, height=4.8)
        draw_graph(axes[0], drawn.places, condensed(truth), shared=condensed(shared) > 0)
        axes[0].set_title("Ground truth")
        for ax, row in zip(axes[1:], DRAWN_ROWS, strict=True):
            point = choose(row, scenario, trials, recipe).point
            study = learn_point(silos, CONTENDERS[row.method], recipe, point)
            w = study.graphs["C1"]
            has = CONTENDERS[row.method].has_consensus
            draw_graph(
                ax, drawn.places, w, shared=study.consensus > recipe.threshold if has else None,
                threshold=recipe.threshold,
            )  # fmt: skip
            found = f"FS {f_score(truth, w, recipe.threshold):.2f}"
            ax.set_title(f"{row.label}\n{found}" + (f", {format_point(point)}" if point else ""))
        edge_legend(figure, shared="in the consensus graph", own="in this silo's graph only")
    caption = (
        "The graph of the first of five silos, on the places of its nodes; lines are as wide as weights are large. "
        "Grey: methods without a consensus graph. Each method at the parameters it chose in Table I."
    )
    return Outcome(pictures=(Picture(name="figure-graphs", title=TITLE, caption=caption, figure=figure),))


def condensed(graph: object) -> np.ndarray:
    """A graph's weights, one per pair."""
    adjacency = graph.adjacency()  # type: ignore[attr-defined]
    out: np.ndarray = adjacency[np.triu_indices(len(adjacency), 1)]
    return out
