"""`ingest db psql` never shows a password to `ps`."""

from ingest.cli.db import split_password


def test_the_password_travels_in_the_environment() -> None:
    address, environment = split_password("postgresql://ana:p%40ss@db.example:5433/ingest?sslmode=require")
    assert address == "postgresql://ana@db.example:5433/ingest?sslmode=require"
    assert environment == {"PGPASSWORD": "p@ss"}


def test_an_address_without_password_stays_as_it_is() -> None:
    url = "postgresql://postgres@/ingest?host=/tmp/s&port=4356"
    assert split_password(url) == (url, {})
