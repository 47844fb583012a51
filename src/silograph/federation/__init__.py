"""Real sites: the study file, signed messages, the site's side, the coordinator's side, and NVFlare between them."""
