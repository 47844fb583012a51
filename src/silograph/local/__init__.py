"""One silo: its problem, the solvers, the search for a degree, and its graph under the pull of a consensus."""
