"""One file per competitor; each offers `SOLVERS`, from the names in `benchmarks.catalogue` to what is timed."""
