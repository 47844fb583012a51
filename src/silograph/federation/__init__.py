"""Silos and a coordinator: what crosses between them, the one loop that runs every method, and its checkpoints."""
