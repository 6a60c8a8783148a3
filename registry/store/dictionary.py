"""sys_dict_* and reg_default, read together in one statement and kept for a minute (A8: static blocks by TTL)."""

import time
from threading import Lock

from sqlalchemy import text

from ingest.db import Connection
from registry.dictionary import Dictionary, Platform

_TTL_S = 60.0
_READ = text("""
    SELECT 'item', type_code, item_code, NULL, NULL::jsonb, sort_order FROM sys_dict_item WHERE enabled
    UNION ALL
    SELECT 'alias', a.type_code, a.alias, a.item_code, NULL, 0 FROM sys_dict_item_alias a
      JOIN sys_dict_item i ON i.type_code = a.type_code AND i.item_code = a.item_code AND i.enabled
    UNION ALL
    SELECT 'default', section, name, NULL, value, 0 FROM reg_default
    ORDER BY 2, 6
""")

_lock = Lock()
_kept: dict[str, tuple[float, Platform]] = {}


def load_platform(conn: Connection, *, ttl_s: float = _TTL_S) -> Platform:
    """Return the dictionary and the defaults, from memory if they were read less than `ttl_s` ago."""
    address = str(conn.engine.url)
    with _lock:
        kept = _kept.get(address)
    if kept is not None and time.monotonic() - kept[0] < ttl_s:
        return kept[1]
    platform = _read(conn)
    with _lock:
        _kept[address] = (time.monotonic(), platform)
    return platform


def _read(conn: Connection) -> Platform:
    items: dict[str, tuple[str, ...]] = {}
    aliases: dict[str, dict[str, str]] = {}
    defaults: dict[str, dict[str, object]] = {}
    for kind, group, name, code, value, _ in conn.execute(_READ):
        if kind == "item":
            items[group] = (*items.get(group, ()), name)
        elif kind == "alias":
            aliases.setdefault(group, {})[name] = code
        else:
            defaults.setdefault(group, {})[name] = value
    return Platform(Dictionary(items, aliases), defaults)  # type: ignore[arg-type]  # jsonb is JSON
