"""Signals in: a silo's table of samples × nodes, read in chunks from a file, with named nodes."""

from silograph.signals.checks import check_finite, check_names, check_table
from silograph.signals.table import SUFFIXES, Signals, open_signals

__all__ = ["SUFFIXES", "Signals", "check_finite", "check_names", "check_table", "open_signals"]
