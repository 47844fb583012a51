"""Open sums: the server receives every site's term, and the docs say so."""

import numpy as np

from silograph._util.types import Vector
from silograph.audit.findings import Finding, recovered
from silograph.audit.scene import N_NODES, PAIRS, Scene, answers_of, silo_of, sum_of, term_in
from silograph.audit.statistics import relative_error


def one_round(scene: Scene) -> list[Finding]:
    """A site's z/N from its answer; with one colluder fewer than there are sites, from the sum."""
    tables = scene.tables()
    answers = answers_of([silo_of(name, table) for name, table in zip(scene.sites, tables, strict=True)])
    truth = _mean_squared_differences(tables[0])
    seen = relative_error(term_in(answers[0]), truth)
    others = np.sum([term_in(answer) for answer in answers[1:]], axis=0)
    left = relative_error(sum_of(answers) - others, truth)
    return [
        recovered("open/term", "one open answer", "read a site's z/N from one round", seen),
        recovered("open/rest", "the sum, their own terms", "what is left of the sum", left, who="all other sites"),
    ]


def two_versions(scene: Scene) -> list[Finding]:
    """The row that was added between two versions of a table, where nothing stops the second answer."""
    table = scene.tables()[0]
    after, before = (term_in(answers_of([silo_of("oslo", rows)])[0]) for rows in (table, table[:-1]))
    row = row_in(len(table) * after - (len(table) - 1) * before)
    truth = table[-1] - table[-1].mean()
    error = min(relative_error(row, truth), relative_error(-row, truth))
    return [recovered("open/versions", "open answers for two versions", "the row between them", error, most=1e-6)]


def row_in(squares: Vector) -> Vector:
    """A row less its mean, up to its sign, from its squared differences."""
    square = np.zeros((N_NODES, N_NODES))
    square[PAIRS.rows, PAIRS.cols] = square[PAIRS.cols, PAIRS.rows] = squares
    centre = np.eye(N_NODES) - 1 / N_NODES
    values, vectors = np.linalg.eigh(-centre @ square @ centre / 2)
    row: Vector = vectors[:, -1] * np.sqrt(values[-1])
    return row


def _mean_squared_differences(table: np.ndarray) -> Vector:
    """z/N by its definition: independent of the code under attack."""
    found: Vector = ((table[:, PAIRS.rows] - table[:, PAIRS.cols]) ** 2).mean(axis=0)
    return found
