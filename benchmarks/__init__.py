"""How fast silograph is beside others: `python -m benchmarks.run one_silo`, or `joint` for several silos."""
