"""Signals in: a silo's table of samples × nodes, read in chunks from a file, with named nodes."""

from silograph.data.readers.table import Signals, open_signals

__all__ = ["Signals", "open_signals"]
