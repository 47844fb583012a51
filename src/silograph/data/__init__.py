"""From tables to costs: readers, moments, alignment of silos by the names of their nodes."""
