"""The settings of an endpoint under their three names: what people write, the reg_* column, the snapshot's attribute.

Invariant: one line per setting. Expanding a file, merging rows, compiling, diffing and showing all read this table, so
a setting cannot be known to one of them and unknown to another.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from ingest.durations import format_duration, format_rate, format_size

Unit = Literal["", "seconds", "bytes", "rates"]

# merge section -> the table whose rows hold it; `records` and `vars` are columns of the endpoint and the source
SECTION_TABLES = {
    "http": "reg_prov_http_cfg",
    "pagination": "reg_prov_pagination_cfg",
    "window": "reg_prov_window_offset_cfg",
    "retry": "reg_prov_retry_cfg",
    "rate": "reg_prov_rate_limit_cfg",
    "batching": "reg_prov_batching_cfg",
    "expr": "reg_prov_expr_capability",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One setting. `key` is its path in the file below the endpoint (or source); `dictionary` the type of its codes."""

    section: str
    column: str
    key: str
    attribute: str | None
    unit: Unit = ""
    dictionary: str = ""


FIELDS = (
    Field("http", "base_url", "base_url", "http.base_url"),
    Field("http", "body_template", "body", "http.body"),
    Field("http", "body_kind", "body_kind", "http.body_kind"),
    Field("http", "connect_timeout_s", "timeouts.connect", "http.connect_timeout_s", "seconds"),
    Field("http", "read_timeout_s", "timeouts.read", "http.read_timeout_s", "seconds"),
    Field("http", "total_timeout_s", "timeouts.total", "http.total_timeout_s", "seconds"),
    Field("http", "redirects", "http.redirects", "http.redirects"),
    Field("http", "compression", "http.compression", "http.compression"),
    Field("http", "proxy", "http.proxy", "http.proxy"),
    Field("pagination", "pagination_type_code", "pagination.kind", "pagination.kind", dictionary="pagination_type"),
    Field("pagination", "page_size", "pagination.size", "pagination.size"),
    Field("pagination", "max_page_size", "pagination.max_size", None),
    Field("pagination", "page_base", "pagination.base", "pagination.base"),
    Field("pagination", "initial_value", "pagination.start", "pagination.initial"),
    Field("pagination", "max_page", "pagination.max_page", "pagination.max_page"),
    Field("pagination", "next_path", "pagination.next", "pagination.next_path"),
    Field("pagination", "next_in", "pagination.next_in", "pagination.next_in"),
    Field("pagination", "has_more_path", "pagination.has_more", "pagination.has_more_path"),
    Field("pagination", "stop_rules", "pagination.stop", "pagination.stop", dictionary="stop_rule"),
    Field("pagination", "order_by", "pagination.order_by", "pagination.order_by"),
    Field("pagination", "token_kind", "pagination.token", "pagination.token_kind"),
    Field("pagination", "advance_by", "pagination.advance_by", "pagination.advance_by"),
    Field("window", "filter_kind", "window.filter", "window.filter", dictionary="window_filter"),
    Field("window", "watermark_key", "window.field", "window.field"),
    Field("window", "start_at", "window.start", "window.start"),
    Field("window", "ends", "window.ends", "window.ends"),
    Field("window", "precision_unit", "window.precision", "window.precision", dictionary="window_precision"),
    Field("window", "bound", "window.bound", "window.bound"),
    Field("window", "zone", "window.zone", "window.zone"),
    Field("window", "format", "window.format", "window.format"),
    Field("window", "safety_lag_s", "window.safety_lag", "window.safety_lag_s", "seconds"),
    Field("window", "max_window_s", "window.max", "window.max_s", "seconds"),
    Field("window", "min_window_s", "window.min", "window.min_s", "seconds"),
    Field("window", "align", "window.align", "window.align"),
    Field("retry", "policy", "retry.policy", "retry.policy"),
    Field("retry", "max_attempts", "retry.attempts", "retry.max_attempts"),
    Field("retry", "base_s", "retry.base", "retry.base_s", "seconds"),
    Field("retry", "factor", "retry.factor", "retry.factor"),
    Field("retry", "jitter", "retry.jitter", "retry.jitter"),
    Field("retry", "cap_s", "retry.cap", "retry.cap_s", "seconds"),
    Field("retry", "retry_statuses", "retry.statuses", "retry.statuses"),
    Field("retry", "response_rules", "responses", "response.rules"),
    Field("rate", "windows", "rate.windows", "rate.windows", "rates"),
    Field("rate", "rate_per_s", "rate.per_second", "rate.rate_per_s"),
    Field("rate", "burst", "rate.burst", "rate.burst"),
    Field("rate", "demote_rate", "rate.demote", "rate.demote_rate"),
    Field("rate", "rate_min", "rate.minimum", "rate.rate_min"),
    Field("rate", "share", "rate.share", "rate.share"),
    Field("batching", "concurrency", "concurrency", "budget.concurrency"),
    Field("batching", "inventory", "budget.inventory", "budget.inventory"),
    Field("batching", "priority", "budget.priority", "budget.priority"),
    Field("batching", "max_requests", "budget.requests", "budget.max_requests"),
    Field("batching", "max_records", "budget.records", "budget.max_records"),
    Field("batching", "max_duration_s", "budget.duration", "budget.max_duration_s", "seconds"),
    Field("batching", "quarantine_share", "quarantine", "mapping.quarantine_share"),
    Field("batching", "max_body_bytes", "max_body", "response.max_body_bytes", "bytes"),
    Field("records", "payload_type", "payload", "mapping.payload", dictionary="payload_type"),
    Field("expr", "allowed_functions", "functions", "expr.allowed_functions"),
    Field("expr", "null_policy", "null_policy", "expr.null_policy"),
)

BY_COLUMN = {(field.section, field.column): field for field in FIELDS}
BY_KEY = {field.key: field for field in FIELDS}
BY_ATTRIBUTE = {field.attribute: field for field in FIELDS if field.attribute}


def write_value(unit: Unit, value: Any) -> Any:
    """Return the stored value as a person would write it: 600 seconds as 10m."""
    if value is None:
        return None
    match unit:
        case "seconds":
            return format_duration(timedelta(seconds=float(value)))
        case "bytes":
            return format_size(int(value))
        case "rates":
            return [format_rate(window["limit"], timedelta(seconds=float(window["seconds"]))) for window in value]
        case "":
            return value
