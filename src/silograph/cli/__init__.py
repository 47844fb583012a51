"""The command line: options in, messages and exit codes out. The work is done by the packages below."""
