"""Auth: a credential is placed as declared, at its own origin, and is in no digest."""

import base64

import pytest

from executor.auth import authenticate
from executor.request import Request
from executor.secrets import REDACTOR
from ingest.errors import BrokenInvariant, SecretMissing
from ingest.spec.snapshot import Auth

ORIGIN = "https://api.example.org:443"
REQUEST = Request("GET", "https://api.example.org/v1", (("a", "1"),), (("Accept", "x"),))


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_KEY", "k3y-v4lue!")
    monkeypatch.setenv("VENDOR_USER", "us3r-n4me-")


def test_without_auth_nothing_is_added() -> None:
    assert authenticate(REQUEST, Auth(), ORIGIN) is REQUEST


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"type": "BEARER"}, ("Authorization", "Bearer k3y-v4lue!")),
        ({"type": "BEARER", "name": "X-Token", "prefix": "Token "}, ("X-Token", "Token k3y-v4lue!")),
        ({"type": "API_KEY", "name": "X-Api-Key"}, ("X-Api-Key", "k3y-v4lue!")),
        ({"type": "BASIC"}, ("Authorization", "Basic " + base64.b64encode(b"k3y-v4lue!:").decode())),
        (
            {"type": "BASIC", "username_ref": "env:VENDOR_USER"},
            ("Authorization", "Basic " + base64.b64encode(b"us3r-n4me-:k3y-v4lue!").decode()),
        ),
    ],
)
def test_a_credential_goes_in_its_header(auth: dict[str, str], header: tuple[str, str]) -> None:
    sent = authenticate(REQUEST, Auth(secret_ref="env:VENDOR_KEY", **auth), ORIGIN)  # type: ignore[arg-type]
    assert sent.headers == (*REQUEST.headers, header)
    assert REDACTOR.clean(f"you sent {header[1]} to us").removesuffix(" to us").split()[-1] == "[secret]"


def test_a_credential_goes_in_the_query() -> None:
    auth = Auth(type="API_KEY", location="QUERY", name="api_key", secret_ref="env:VENDOR_KEY")
    assert authenticate(REQUEST, auth, ORIGIN).query == (("a", "1"), ("api_key", "k3y-v4lue!"))


@pytest.mark.parametrize(
    "url", ["https://evil.example.org/v1", "http://api.example.org/v1", "https://api.example.org:444/v1"]
)
def test_a_credential_never_goes_to_another_origin(url: str) -> None:
    request = Request("GET", url, (), ())
    with pytest.raises(BrokenInvariant):
        authenticate(request, Auth(type="BEARER", secret_ref="env:VENDOR_KEY"), ORIGIN)


def test_the_digest_taken_before_holds_no_secret() -> None:
    digest = REQUEST.digest()
    authenticate(REQUEST, Auth(type="BEARER", secret_ref="env:VENDOR_KEY"), ORIGIN)
    assert REQUEST.digest() == digest
    assert "k3y" not in str(digest)


@pytest.mark.parametrize("value", ["two\nlines", "tab\there", "Zoë", "nul\x01"])
def test_a_secret_no_header_may_hold_is_refused_without_being_told(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_KEY", value)
    for kind in ("BEARER", "API_KEY"):
        auth = Auth(type=kind, name="X-Key", secret_ref="env:VENDOR_KEY")  # type: ignore[arg-type]
        with pytest.raises(SecretMissing) as caught:
            authenticate(REQUEST, auth, ORIGIN)
        assert value not in str(caught.value)


def test_a_missing_secret_is_never_an_anonymous_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENDOR_KEY")
    with pytest.raises(SecretMissing, match="has no VENDOR_KEY"):
        authenticate(REQUEST, Auth(type="BEARER", secret_ref="env:VENDOR_KEY"), ORIGIN)
