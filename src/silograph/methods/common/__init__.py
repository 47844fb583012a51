"""What several methods share: bounds, mixing, averaging, gradient steps."""
