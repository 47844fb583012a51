"""Attacks on ourselves: what is unprotected must break, what claims protection must not."""
