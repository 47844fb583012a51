"""Several silos: how long solvers of the joint problem take to an accuracy."""
