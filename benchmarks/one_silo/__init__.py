"""One silo: how long solvers of the local problem take to reach a certified accuracy."""
