"""The numbers the paper prints, as it prints them: Tables I to V.

Columns are precision, recall, F-score and relative error in Tables I to III, and NMI, Rand index and Fowlkes-Mallows
index in Table IV. Rows have the names that our tables use.
"""

from collections.abc import Mapping

Rows = Mapping[str, tuple[float, ...]]


def _by_block(blocks: tuple[str, ...], rows: Mapping[str, str]) -> Mapping[str, Rows]:
    """A printed table, whose rows have the numbers of all blocks side by side, as block, row and numbers."""
    numbers = {row: [tuple(map(float, part.split())) for part in text.split("|")] for row, text in rows.items()}
    return {block: {row: parts[k] for row, parts in numbers.items()} for k, block in enumerate(blocks)}


TABLE_1 = _by_block(
    ("N = 20", "N = 50", "N = 100"),
    {
        "IGL": "0.594 0.469 0.521 0.915 | 0.692 0.620 0.651 0.778 | 0.776 0.739 0.755 0.698",
        "FedAvg": "0.434 0.759 0.552 0.802 | 0.464 0.792 0.584 0.768 | 0.519 0.789 0.624 0.744",
        "FedProx": "0.423 0.767 0.544 0.765 | 0.523 0.728 0.606 0.718 | 0.623 0.703 0.655 0.690",
        "MRMTL": "0.522 0.551 0.547 0.881 | 0.647 0.688 0.663 0.756 | 0.738 0.789 0.760 0.680",
        "Ditto": "0.582 0.547 0.557 0.884 | 0.662 0.671 0.663 0.775 | 0.732 0.780 0.750 0.696",
        "PPGL-L": "0.547 0.579 0.561 0.911 | 0.625 0.760 0.678 0.731 | 0.698 0.870 0.774 0.619",
        "PPGL-C": "0.636 0.516 0.566 0.874 | 0.781 0.656 0.710 0.701 | 0.881 0.736 0.800 0.627",
    },
)

TABLE_2 = _by_block(
    ("q = 0.3", "q = 0.6", "q = 0.9"),
    {
        "IGL": "0.701 0.593 0.640 0.783 | 0.736 0.645 0.685 0.758 | 0.822 0.706 0.759 0.717",
        "FedAvg": "0.385 0.841 0.527 0.835 | 0.460 0.867 0.599 0.783 | 0.811 0.922 0.862 0.672",
        "FedProx": "0.437 0.720 0.543 0.770 | 0.569 0.750 0.645 0.716 | 0.874 0.863 0.868 0.641",
        "MRMTL": "0.662 0.691 0.674 0.761 | 0.690 0.730 0.707 0.753 | 0.816 0.794 0.807 0.663",
        "Ditto": "0.667 0.675 0.668 0.765 | 0.698 0.714 0.704 0.739 | 0.821 0.783 0.804 0.667",
        "PPGL-L": "0.637 0.736 0.679 0.740 | 0.661 0.776 0.715 0.700 | 0.800 0.812 0.805 0.635",
        "PPGL-C": "0.462 0.516 0.487 0.874 | 0.653 0.726 0.687 0.752 | 0.825 0.927 0.873 0.634",
    },
)

TABLE_3 = _by_block(
    ("Case 1", "Case 2"),
    {
        "PPGL-L": "0.691 0.773 0.691 0.705 | 0.718 0.875 0.789 0.605",
        "PPGL-C": "0.743 0.702 0.722 0.689 | 0.888 0.744 0.810 0.611",
        "PPGL-L, equal weights": "0.618 0.751 0.678 0.711 | 0.704 0.857 0.773 0.625",
        "PPGL-C, equal weights": "0.702 0.692 0.697 0.701 | 0.880 0.730 0.798 0.632",
    },
)

TABLE_4: Rows = {
    "IGL": (0.779, 0.855, 0.755),
    "FedAvg": (0.745, 0.843, 0.736),
    "FedProx": (0.767, 0.851, 0.745),
    "MRMTL": (0.795, 0.891, 0.773),
    "Ditto": (0.786, 0.883, 0.768),
    "PPGL-L": (0.865, 0.919, 0.852),
    "PPGL-C": (1.0, 1.0, 1.0),
}

TABLE_5: Mapping[str, tuple[float, float]] = {  # mean number of edges, mean weight of them
    "Autism": (114, 0.091),
    "Control": (125, 0.109),
}

# γ of the five silos, from a table that the paper's source keeps beside the figure it prints
WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "Case 1": (0.541, 0.584, 0.661, 0.707, 0.718),
    "Case 2": (0.837, 0.808, 0.720, 0.735, 0.584),
}
