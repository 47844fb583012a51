"""NVFlare as the engine between machines: kits, hosting, and our classes inside its processes."""
