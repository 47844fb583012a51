"""How fast silograph is beside others, and how its costs grow: `python -m benchmarks.run`."""
