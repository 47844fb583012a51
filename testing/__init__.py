"""What tests and benchmarks share: problems, a transcription of the paper, consortia, federations that really run."""
