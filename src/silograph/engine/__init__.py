"""The one loop that runs every method, the engine inside one process, and checkpoints."""
