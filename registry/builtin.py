"""The dictionary and defaults as the migrations leave them, for places without a database: validate, schema, tests.

Invariant: equal to `sys_dict_*` and `reg_default` of a fresh database (a store test compares). A migration that changes
those changes this too.
"""

from registry.dictionary import Dictionary, Platform

_ITEMS = {
    "http_method": "GET POST",
    "ing_operation": "HARVEST BACKFILL UPDATE CALL",
    "ing_cursor_type": "TIME ID TOKEN",
    "ing_namespace_scope": "GLOBAL EXPR CUSTOM",
    "direction": "FORWARD BACKFILL",
    "trigger_type": "SCHEDULE MANUAL",
    "auth_type": "NONE API_KEY BEARER BASIC OAUTH2 CUSTOM",
    "auth_location": "HEADER QUERY BODY",
    "param_location": "QUERY HEADER BODY PATH",
    "pagination_type": "NONE OFFSET PAGE TOKEN URL TIME",
    "endpoint_role": "SEARCH DETAIL METRICS",
    "stop_rule": "short_page empty_page no_next has_more_false total_reached single",
    "window_filter": "server none",
    "window_precision": "day minute second ms us",
    "field_kind": "ITEMS ID UPDATED_AT VERSION TOTAL COLUMN",
    "column_type": "text int float numeric bool timestamp date json partial_date",
    "payload_type": "json jsonb none",
    "plan_status": "DRAFT SLICING READY PARTIAL FAILED CANCELLED",
    "slice_status": "PENDING READY PARTIAL FAILED CANCELLED",
    "task_status": "QUEUED DISPATCHED EXECUTING SUCCEEDED FAILED PARTIAL CANCELLED",
    "run_status": "PLANNED RUNNING SUCCEEDED PARTIAL FAILED CANCELLED",
    "batch_status": "SUCCEEDED SKIPPED FAILED",
}

# Types whose codes are also written in lower case; the other aliases stand below.
_LOWER = (
    "http_method", "ing_operation", "auth_type", "auth_location", "param_location", "pagination_type", "endpoint_role",
)  # fmt: skip
_ALIASES = {
    "auth_type": {"key": "API_KEY"},
    "pagination_type": {"single": "NONE", "cursor": "TOKEN", "link": "URL"},
    "window_filter": {"false": "none"},
    "column_type": {
        "string": "text", "str": "text", "integer": "int", "bigint": "int", "double": "float", "decimal": "numeric",
        "boolean": "bool", "datetime": "timestamp", "timestamptz": "timestamp", "jsonb": "json",
    },
}  # fmt: skip


def _all_aliases() -> dict[str, dict[str, str]]:
    found = {kind: {code.lower(): code for code in _ITEMS[kind].split()} for kind in _LOWER}
    for kind, aliases in _ALIASES.items():
        found.setdefault(kind, {}).update(aliases)
    return found


BUILTIN = Platform(
    dictionary=Dictionary(
        items={kind: tuple(codes.split()) for kind, codes in _ITEMS.items()},
        aliases=_all_aliases(),
    ),
    defaults={
        "http": {
            "connect_timeout_s": 10, "read_timeout_s": 30, "total_timeout_s": 120, "redirects": 0, "compression": True,
            "default_headers": {}, "default_query": {},
        },
        "pagination": {
            "pagination_type_code": "NONE", "page_base": 1, "next_in": "body", "token_kind": "repeatable",
            "advance_by": "received",
        },
        "window": {
            "filter_kind": "none", "ends": "exclusive", "precision_unit": "us", "bound": "unit", "zone": "UTC",
            "format": "iso", "safety_lag_s": 600, "max_window_s": 86400, "min_window_s": 60,
        },
        "retry": {
            "policy": "exponential_jitter", "max_attempts": 5, "base_s": 0.1, "factor": 2, "jitter": 0.2, "cap_s": 30,
            "retry_statuses": [429, 500, 501, 502, 503, 504],
        },
        "rate": {
            "rate_per_s": 1, "burst": 1, "warmup_s": 0, "demote_rate": 2, "rate_min": 0.1, "windows": [],
            "share": "endpoint",
        },
        "batching": {"inventory": 200, "quarantine_share": 0.1, "max_body_bytes": 67108864},
        "records": {"payload_type": "json"},
        "expr": {
            "null_policy": "omit",
            "allowed_functions": ["now", "formatDateTime", "coalesce", "concat", "lower", "upper", "int", "default"],
        },
    },
)  # fmt: skip
