"""Partial correlations with their signs: the second opinion beside the smooth model, which knows distances only."""
