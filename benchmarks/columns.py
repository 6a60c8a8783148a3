"""The typed columns of the wide variants, the same for ours and for the floor."""

# name in the record -> PostgreSQL's type, beyond the key columns
TYPED = {
    "title": "text",
    "type": "text",
    "issued": "date",
    "cited_by": "bigint",
    "score": "double precision",
    "open_access": "boolean",
}
