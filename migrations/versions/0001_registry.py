"""reg_* and sys_dict_*: what people declared, the codes it is written in, and the platform's defaults (A1, A3, A10)."""

import json

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# endpoint_name is '' on rows that hold for the whole source, so that the key is a plain unique one.
_SCOPE = """
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provenance_code text NOT NULL,
    endpoint_name   text NOT NULL DEFAULT '',
"""
_STAMP = """
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
"""

_TABLES = {
    "sys_dict_type": """
        id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        type_code   text NOT NULL UNIQUE,
        description text NOT NULL
    """,
    "sys_dict_item": """
        id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        type_code   text NOT NULL,
        item_code   text NOT NULL,
        description text NOT NULL DEFAULT '',
        sort_order  integer NOT NULL DEFAULT 0,
        enabled     boolean NOT NULL DEFAULT true,
        CONSTRAINT uk_dict_item UNIQUE (type_code, item_code)
    """,
    "sys_dict_item_alias": """
        id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        type_code   text NOT NULL,
        alias       text NOT NULL,
        item_code   text NOT NULL,
        CONSTRAINT uk_dict_alias UNIQUE (type_code, alias)
    """,
    "reg_default": """
        section text NOT NULL,
        name    text NOT NULL,
        value   jsonb NOT NULL,
        reason  text NOT NULL DEFAULT '',
        PRIMARY KEY (section, name)
    """,
    "reg_provenance": f"""
        id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        provenance_code text NOT NULL UNIQUE,
        description     text NOT NULL DEFAULT '',
        owner_contact   text NOT NULL DEFAULT '',
        docs_url        text NOT NULL DEFAULT '',
        vars            jsonb NOT NULL DEFAULT '{{}}',
        defaults        jsonb NOT NULL DEFAULT '{{}}',
        release_tag     text NOT NULL DEFAULT 'stable',
        enabled         boolean NOT NULL DEFAULT true,
        revision        integer NOT NULL DEFAULT 0,
        {_STAMP}
        updated_by      text NOT NULL DEFAULT ''
    """,
    "reg_prov_endpoint_def": f"""
        {_SCOPE}
        description          text NOT NULL DEFAULT '',
        role_code            text NOT NULL,
        method_code          text NOT NULL,
        path                 text NOT NULL,
        dataset_name         text NOT NULL,
        payload_type         text,
        linked_endpoint_name text,
        two_phase            boolean NOT NULL DEFAULT false,
        overrides            jsonb NOT NULL DEFAULT '{{}}',
        enabled              boolean NOT NULL DEFAULT true,
        {_STAMP}
        CONSTRAINT uk_endpoint UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_http_cfg": f"""
        {_SCOPE}
        base_url          text,
        default_headers   jsonb,
        default_query     jsonb,
        body_template     jsonb,
        body_kind         text,
        connect_timeout_s numeric,
        read_timeout_s    numeric,
        total_timeout_s   numeric,
        redirects         integer,
        compression       boolean,
        proxy             text,
        {_STAMP}
        CONSTRAINT uk_http_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_credential": f"""
        {_SCOPE}
        credential_code text NOT NULL,
        auth_type_code  text NOT NULL,
        location_code   text NOT NULL,
        param_name      text,
        value_prefix    text,
        secret_ref      text,
        username_ref    text,
        scope_data      boolean NOT NULL DEFAULT false,
        priority        integer NOT NULL DEFAULT 100,
        {_STAMP}
        CONSTRAINT uk_credential UNIQUE (provenance_code, endpoint_name, credential_code)
    """,
    "reg_prov_pagination_cfg": f"""
        {_SCOPE}
        pagination_type_code text,
        page_size            integer,
        max_page_size        integer,
        page_base            integer,
        initial_value        text,
        max_page             integer,
        next_path            text,
        next_in              text,
        has_more_path        text,
        stop_rules           text[],
        order_by             text,
        token_kind           text,
        advance_by           text,
        {_STAMP}
        CONSTRAINT uk_pagination_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_window_offset_cfg": f"""
        {_SCOPE}
        filter_kind    text,
        watermark_key  text,
        start_at       timestamptz,
        ends           text,
        precision_unit text,
        bound          text,
        zone           text,
        format         text,
        safety_lag_s   numeric,
        max_window_s   numeric,
        min_window_s   numeric,
        align          text,
        {_STAMP}
        CONSTRAINT uk_window_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_retry_cfg": f"""
        {_SCOPE}
        policy         text,
        max_attempts   integer,
        base_s         numeric,
        factor         numeric,
        jitter         numeric,
        cap_s          numeric,
        retry_statuses integer[],
        {_STAMP}
        CONSTRAINT uk_retry_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_rate_limit_cfg": f"""
        {_SCOPE}
        windows      jsonb,
        rate_per_s   numeric,
        burst        integer,
        warmup_s     numeric,
        demote_rate  numeric,
        rate_min     numeric,
        share        text,
        {_STAMP}
        CONSTRAINT uk_rate_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_batching_cfg": f"""
        {_SCOPE}
        id_batch_size     integer,
        combine_threshold integer,
        concurrency       integer,
        inventory         integer,
        quarantine_share  numeric,
        max_body_bytes    bigint,
        max_requests      integer,
        max_records       bigint,
        max_duration_s    numeric,
        priority          integer,
        {_STAMP}
        CONSTRAINT uk_batching_cfg UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_api_param_map": f"""
        {_SCOPE}
        param_name    text NOT NULL,
        location_code text NOT NULL,
        template      text NOT NULL,
        inert         boolean NOT NULL DEFAULT false,
        sort_order    integer NOT NULL DEFAULT 0,
        {_STAMP}
        CONSTRAINT uk_param_map UNIQUE (provenance_code, endpoint_name, location_code, param_name)
    """,
    "reg_prov_expr_capability": f"""
        {_SCOPE}
        allowed_functions text[],
        {_STAMP}
        CONSTRAINT uk_expr_capability UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_prov_expr_render_rule": f"""
        {_SCOPE}
        null_policy text,
        {_STAMP}
        CONSTRAINT uk_expr_render_rule UNIQUE (provenance_code, endpoint_name)
    """,
    "reg_expr_field_dict": f"""
        {_SCOPE}
        field_kind text NOT NULL,
        field_name text NOT NULL,
        path       text NOT NULL,
        data_type  text,
        format     text,
        required   boolean NOT NULL DEFAULT false,
        transform  jsonb NOT NULL DEFAULT '{{}}',
        sort_order integer NOT NULL DEFAULT 0,
        {_STAMP}
        CONSTRAINT uk_field UNIQUE (provenance_code, endpoint_name, field_kind, field_name)
    """,
    "reg_schedule": f"""
        {_SCOPE}
        schedule_code  text NOT NULL UNIQUE,
        operation_code text NOT NULL,
        kind           text NOT NULL CHECK (kind IN ('every', 'once')),
        every_s        numeric,
        start_at       timestamptz,
        jitter_s       numeric NOT NULL DEFAULT 0,
        enabled        boolean NOT NULL DEFAULT true,
        {_STAMP}
        CONSTRAINT every_has_interval CHECK (kind <> 'every' OR every_s > 0)
    """,
    "reg_revision": """
        id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        provenance_code text NOT NULL,
        revision        integer NOT NULL,
        document        text NOT NULL,
        document_hash   text NOT NULL,
        rows            jsonb NOT NULL,
        changes         jsonb NOT NULL,
        reason          text NOT NULL DEFAULT '',
        changed_by      text NOT NULL,
        changed_at      timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT uk_revision UNIQUE (provenance_code, revision)
    """,
}

# type -> (what it names, its items, aliases -> item)
_DICTIONARY: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "http_method": ("HTTP methods", ("GET", "POST"), {"get": "GET", "post": "POST"}),
    "ing_operation": (
        "what a plan is for",
        ("HARVEST", "BACKFILL", "UPDATE", "CALL"),
        {"harvest": "HARVEST", "backfill": "BACKFILL", "update": "UPDATE", "call": "CALL"},
    ),
    "ing_cursor_type": ("how cursors compare", ("TIME", "ID", "TOKEN"), {}),
    "ing_namespace_scope": ("whose cursor", ("GLOBAL", "EXPR", "CUSTOM"), {}),
    "direction": ("which way a cursor moves", ("FORWARD", "BACKFILL"), {}),
    "trigger_type": ("what started a plan", ("SCHEDULE", "MANUAL"), {}),
    "auth_type": (
        "how a request is authenticated",
        ("NONE", "API_KEY", "BEARER", "BASIC", "OAUTH2", "CUSTOM"),
        {
            "none": "NONE",
            "api_key": "API_KEY",
            "key": "API_KEY",
            "bearer": "BEARER",
            "basic": "BASIC",
            "oauth2": "OAUTH2",
            "custom": "CUSTOM",
        },
    ),
    "auth_location": (
        "where a credential goes",
        ("HEADER", "QUERY", "BODY"),
        {"header": "HEADER", "query": "QUERY", "body": "BODY"},
    ),
    "param_location": (
        "where a parameter goes",
        ("QUERY", "HEADER", "BODY", "PATH"),
        {"query": "QUERY", "header": "HEADER", "body": "BODY", "path": "PATH"},
    ),
    "pagination_type": (
        "how a source pages",
        ("NONE", "OFFSET", "PAGE", "TOKEN", "URL", "TIME"),
        {
            "none": "NONE",
            "single": "NONE",
            "offset": "OFFSET",
            "page": "PAGE",
            "token": "TOKEN",
            "cursor": "TOKEN",
            "url": "URL",
            "link": "URL",
            "time": "TIME",
        },
    ),
    "endpoint_role": (
        "what an endpoint is for",
        ("SEARCH", "DETAIL", "METRICS"),
        {"search": "SEARCH", "detail": "DETAIL", "metrics": "METRICS"},
    ),
    "stop_rule": (
        "what ends a walk",
        ("short_page", "empty_page", "no_next", "has_more_false", "total_reached", "single"),
        {},
    ),
    "window_filter": ("who filters by time", ("server", "none"), {"false": "none"}),
    "window_precision": (
        "the unit a source's window ends sit on",
        ("day", "minute", "second", "ms", "us"),
        {},
    ),
    "field_kind": ("what a path finds", ("ITEMS", "ID", "UPDATED_AT", "VERSION", "TOTAL", "COLUMN"), {}),
    "column_type": (
        "the type of a dataset's column",
        ("text", "int", "float", "numeric", "bool", "timestamp", "date", "json", "partial_date"),
        {
            "string": "text",
            "str": "text",
            "integer": "int",
            "bigint": "int",
            "double": "float",
            "decimal": "numeric",
            "boolean": "bool",
            "datetime": "timestamp",
            "timestamptz": "timestamp",
            "jsonb": "json",
        },
    ),
    "payload_type": ("how the record's own text is kept", ("json", "jsonb", "none"), {}),
    "plan_status": ("", ("DRAFT", "SLICING", "READY", "PARTIAL", "FAILED", "CANCELLED"), {}),
    "slice_status": ("", ("PENDING", "READY", "PARTIAL", "FAILED", "CANCELLED"), {}),
    "task_status": (
        "",
        ("QUEUED", "DISPATCHED", "EXECUTING", "SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"),
        {},
    ),
    "run_status": ("", ("PLANNED", "RUNNING", "SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"), {}),
    "batch_status": ("", ("SUCCEEDED", "SKIPPED", "FAILED"), {}),
}

# section.name -> (value, why); the lowest level of the merge (A3)
_DEFAULTS: dict[str, dict[str, tuple[object, str]]] = {
    "http": {
        "connect_timeout_s": (10, "B2"),
        "read_timeout_s": (30, "B2"),
        "total_timeout_s": (120, "B2: never above"),
        "redirects": (0, "B2: off"),
        "compression": (True, "B2"),
        "default_headers": ({}, ""),
        "default_query": ({}, ""),
    },
    "pagination": {
        "pagination_type_code": ("NONE", "one request, one page"),
        "page_base": (1, ""),
        "next_in": ("body", ""),
        "token_kind": ("repeatable", ""),
        "advance_by": ("received", "what came, not what was asked, is what is done"),
    },
    "window": {
        "filter_kind": ("none", "no server filter unless declared"),
        "ends": ("exclusive", "half-open like ours"),
        "precision_unit": ("us", ""),
        "bound": ("unit", ""),
        "zone": ("UTC", ""),
        "format": ("iso", "B10"),
        "safety_lag_s": (600, "B5: ten minutes"),
        "max_window_s": (86400, "one day"),
        "min_window_s": (60, ""),
    },
    "retry": {
        "policy": ("exponential_jitter", "B12"),
        "max_attempts": (5, "B12, the first included"),
        "base_s": (0.1, "B12"),
        "factor": (2, "B12"),
        "jitter": (0.2, "B12"),
        "cap_s": (30, "B12"),
        "retry_statuses": ([429, 500, 501, 502, 503, 504], "B12"),
    },
    "rate": {
        "rate_per_s": (1, "C8"),
        "burst": (1, "C8"),
        "warmup_s": (0, "C8"),
        "demote_rate": (2, "C8"),
        "rate_min": (0.1, "C8"),
        "windows": ([], ""),
        "share": ("endpoint", "C1"),
    },
    "batching": {
        "inventory": (200, "D6: queued tasks per lane"),
        "quarantine_share": (0.1, "DESIGN rule 7"),
        "max_body_bytes": (67108864, "E10: 64 MiB"),
    },
    "records": {"payload_type": ("json", "DESIGN §4: the exact text the source sent")},
    "expr": {
        "null_policy": ("omit", "B10"),
        "allowed_functions": (
            ["now", "formatDateTime", "coalesce", "concat", "lower", "upper", "int", "default"],
            "B10",
        ),
    },
}


def _run(statement: str) -> None:
    """Execute as it stands: `op.execute` would read `:name` inside JSON as a parameter."""
    op.get_bind().exec_driver_sql(statement)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def upgrade() -> None:
    """Make the tables and fill the dictionary and the defaults."""
    for name, columns in _TABLES.items():
        _run(f"CREATE TABLE {name} ({columns})")
    for type_code, (description, items, aliases) in _DICTIONARY.items():
        _run(f"INSERT INTO sys_dict_type (type_code, description) VALUES ({_text(type_code)}, {_text(description)})")
        rows = ", ".join(f"({_text(type_code)}, {_text(item)}, {order})" for order, item in enumerate(items))
        _run(f"INSERT INTO sys_dict_item (type_code, item_code, sort_order) VALUES {rows}")
        if aliases:
            rows = ", ".join(f"({_text(type_code)}, {_text(a)}, {_text(i)})" for a, i in aliases.items())
            _run(f"INSERT INTO sys_dict_item_alias (type_code, alias, item_code) VALUES {rows}")
    for section, values in _DEFAULTS.items():
        rows = ", ".join(
            f"({_text(section)}, {_text(name)}, {_text(json.dumps(value))}, {_text(why)})"
            for name, (value, why) in values.items()
        )
        _run(f"INSERT INTO reg_default (section, name, value, reason) VALUES {rows}")


def downgrade() -> None:
    """Drop everything declared."""
    for name in reversed(_TABLES):
        _run(f"DROP TABLE {name}")
