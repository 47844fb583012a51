"""The command line: processor time from an empty cache of compiled loops, from a full one, and for help."""
