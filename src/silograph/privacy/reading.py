"""How tables are read where what leaves carries noise: rows of bounded length, and nothing that has no bound."""

from collections.abc import Sequence

from silograph.data.bounded import RowBounds
from silograph.errors import ParameterError
from silograph.privacy.settings import Privacy

RANKS_HAVE_NO_BOUND = (
    "transform: one row that is replaced changes the ranks of all others, so that its part in a sum of ranks has no "
    "bound that epsilon could rest on. Leave it out: rows are brought to a length that is public anyhow."
)


def row_bounds(privacy: Privacy, nodes: Sequence[str]) -> RowBounds | None:
    """How rows of these nodes are bounded; without ε, not at all."""
    if not privacy.noisy:
        return None
    for name, values in (("centres", privacy.centres), ("scales", privacy.scales)):
        if values is not None and len(values) != len(nodes):
            raise ParameterError(f"{name}: expected one number for each of the {len(nodes)} nodes, got {len(values)}.")
    unit = privacy.rows == "unit"
    return RowBounds(longest=privacy.longest_row, unit=unit, centres=privacy.centres, scales=privacy.scales)


def check_reading(
    privacy: Privacy, *, standardize: bool, transform: str, public: bool, missing: str, precomputed: bool
) -> None:
    """Raise for ways to read tables that ε cannot answer for; `public`: whether centres and scales were given."""
    if not privacy.noisy:
        if public:
            raise ParameterError("centres, scales: public ones are for epsilon alone. Leave them out.")
        return
    if precomputed:
        raise ParameterError(
            "epsilon: precomputed distances have no rows whose part in them could be bounded. Give the signals."
        )
    if standardize and not public:
        raise ParameterError(
            "standardize: a table's own means and variances have no bound that epsilon could rest on. Give public "
            "centres and scales, or leave it out: rows are made unit length anyhow."
        )
    if public and not standardize:
        raise ParameterError("centres, scales: are what standardize means with epsilon. Set it too.")
    if transform != "none":
        raise ParameterError(RANKS_HAVE_NO_BOUND)
    if missing == "pairs":
        raise ParameterError("missing: gaps by pairs have no bound that epsilon could rest on. Use 'rows' or 'error'.")
