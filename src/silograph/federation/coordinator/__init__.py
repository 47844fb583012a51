"""The coordinator of a federation: tasks to the sites, the sums of their answers back, and a history of it all."""
