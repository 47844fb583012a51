"""One file per competitor; each has SOLVERS, from a column's name to how it is run."""
