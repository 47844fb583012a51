"""Tools for every package: files that appear whole, locks, kernels, checks, optional imports. It knows no graph."""
