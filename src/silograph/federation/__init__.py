"""A federation of real sites: its coordinator, its sites, the messages between them, and NVFlare to carry them."""
