"""Solvers of the local problem: silent and pure; each returns a `Solution` with its evidence."""
