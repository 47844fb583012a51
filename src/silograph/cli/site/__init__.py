"""`silograph site`: ask to join, join, host, approve, show the log."""
