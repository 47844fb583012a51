"""What can be said of silos and runs beyond the graphs: which silos are doubtful."""
