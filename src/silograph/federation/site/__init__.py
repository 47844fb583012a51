"""A site's own folder: its settings and limits, what it approved, and what it answered. No coordinator writes here."""
