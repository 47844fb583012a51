"""What every package may use: files that appear whole, locks, kernels, checks, optional imports. It knows no graph."""
