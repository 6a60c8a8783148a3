"""The Spec Snapshot: frozen data, one fingerprint, one origin."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ingest.spec.canonical import canonical_json
from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import Column, Expressions, Http, Pagination, Rate, Retry, Snapshot, origin_of
from tests.factories import make_snapshot


def http(**values: object) -> Http:
    base = {"method": "GET", "base_url": "https://api.example.org/v1", "path": "/works"}
    return Http(**(base | values))  # type: ignore[arg-type]


def test_nothing_in_a_snapshot_can_be_changed() -> None:
    with pytest.raises(ValidationError):
        make_snapshot().http.path = "/other"  # type: ignore[misc]


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_pages"):
        Pagination(max_pages=3)  # type: ignore[call-arg]


def test_a_snapshot_read_back_is_the_same() -> None:
    snapshot = make_snapshot(http=http(query={"q": "{{ vars.term }}"}), expr=Expressions(vars={"term": "x", "n": 1.0}))
    again = Snapshot.model_validate_json(canonical_json(snapshot.as_data()))
    assert again == snapshot
    assert again.spec_fingerprint == snapshot.spec_fingerprint


def test_the_revision_number_is_not_part_of_the_fingerprint() -> None:
    snapshot = make_snapshot()
    assert snapshot.model_copy(update={"revision": 9}).spec_fingerprint == snapshot.spec_fingerprint
    assert snapshot.model_copy(update={"release_tag": "canary"}).spec_fingerprint != snapshot.spec_fingerprint


def test_what_rows_contain_is_decided_by_request_and_mapping() -> None:
    snapshot = make_snapshot()
    column = snapshot.mapping.model_copy(update={"columns": (Column(name="title", path="$.name"),)})
    assert snapshot.model_copy(update={"mapping": column}).expr_proto_hash != snapshot.expr_proto_hash
    faster = snapshot.model_copy(update={"rate": Rate(rate_per_s=9.0)})
    assert faster.expr_proto_hash == snapshot.expr_proto_hash


def test_a_new_contact_address_does_not_change_what_rows_contain() -> None:
    def hash_with(email: str) -> str:
        headers = {"User-Agent": "ingest ({{ vars.email }})", "X-Tenant": "a"}
        request = http(query={"q": "x", "mailto": "{{ vars.email }}"}, headers=headers, inert=("mailto",))
        return make_snapshot(http=request, expr=Expressions(vars={"email": email, "unused": email})).expr_proto_hash

    assert hash_with("a@example.org") == hash_with("b@example.org")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://api.example.org/v1", "https://api.example.org:443"),
        ("HTTP://API.Example.ORG:80", "http://api.example.org:80"),
        ("http://[::1]:8080/x", "http://[::1]:8080"),
        ("https://user:pw@api.example.org", "https://api.example.org:443"),
        ("//api.example.org", "://api.example.org:0"),
        ("file:///etc/passwd", "file://:0"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_an_origin_of_an_ipv6_host_is_its_own_origin() -> None:
    assert origin_of(origin_of("https://[2001:db8::1]/x")) == "https://[2001:db8::1]:443"


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_per_s": None},
        {"rate_per_s": 0.0},
        {"burst": 0},
        {"demote_rate": 0.5},
        {"rate_per_s": None, "windows": ({"limit": 0, "seconds": 1.0},)},
        {"rate_per_s": None, "windows": ({"limit": 1, "seconds": 0.0},)},
    ],
)
def test_a_rate_that_limits_nothing_or_lets_nothing_through_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Rate(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"jitter": 1.5}, {"factor": 0.5}, {"base_s": -1.0}])
def test_a_retry_policy_that_cannot_be_followed_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Retry(**wrong)  # type: ignore[arg-type]


def test_a_snapshot_stored_by_an_earlier_release_keeps_its_hashes() -> None:
    """Running plans outlive an upgrade: a setting added later, at its default, changes no hash; ADR 7."""
    text = (Path(__file__).parent / "snapshot_1.json").read_text(encoding="utf-8")
    stored = Snapshot.model_validate_json(text)
    assert (stored.spec_fingerprint, stored.expr_proto_hash, selection_hash(stored)) == (
        "h1:9abeef5bccd0841f3b111abbd7fa67d5fbbd2889de8d2deb6aae6b923379e1ca",
        "h1:07ee91a00415d8f07b043f213fd5f8ec0cbbe7b6c8f5d7b57030ac3aca87fca7",
        "h1:f8f3d438d89a34eca886330b75ea816e6e3c998bba552a11139a8bd9db25afe6",
    )


def test_a_setting_written_at_its_default_is_not_another_spec() -> None:
    written = make_snapshot(pagination=Pagination(kind="OFFSET", size=5, base=1))
    assert written.spec_fingerprint == make_snapshot(pagination=Pagination(kind="OFFSET", size=5)).spec_fingerprint
