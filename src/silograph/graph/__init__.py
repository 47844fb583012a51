"""Pairs of nodes, graphs on them, and graphs on disk."""
