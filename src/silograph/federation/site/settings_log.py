"""Changes of site.toml in the audit log: which keys, and what the limits are now; never a path."""

import json
from dataclasses import fields
from hashlib import sha256

from silograph.federation.site.audit import AuditLog
from silograph.federation.site.settings import SECTIONS, SiteSettings

HASH_DIGITS = 8  # of a value; enough to see that it changed


def note_settings(log: AuditLog, settings: SiteSettings) -> None:
    """Log the settings if they are not as the log last had them, or if that is far back."""
    told = [field.name for field in fields(settings) if field.name not in SECTIONS["notify"]]  # by which nothing leaves
    now = {name: getattr(settings, name) for name in told}
    digest, before = sha256(repr(now).encode()).hexdigest(), log.last_of("settings")
    if before is not None and before.get("settings") == digest:
        return
    keys = {name: sha256(repr(value).encode()).hexdigest()[:HASH_DIGITS] for name, value in now.items()}
    known = dict(pair.split("=", 1) for pair in str((before or {}).get("keys", "")).split() if "=" in pair)
    changed = [name for name in keys if keys[name] != known.get(name)]
    shown = [f"{name} = {json.dumps(now[name])}" if name in SECTIONS["limits"] else name for name in changed]
    verb = "has" if before is None else "changed"
    log.append(
        {
            "what": "settings",
            "settings": digest,
            "keys": " ".join(f"{name}={value}" for name, value in keys.items()),
            "detail": f"site.toml {verb}: {', '.join(shown)}",
        }
    )
