"""NVFlare as the engine between machines: kits, hosting, and what runs inside its processes."""
