"""What a method is, what crosses between a silo and the coordinator, and a silo's private side."""
