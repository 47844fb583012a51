"""A federation of real sites: what it survives. Start with `benchmarks.federation.faults`."""
