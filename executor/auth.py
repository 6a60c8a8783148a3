"""Auth: place a credential on a request, for its own origin only, after the digest was taken (B1)."""

import base64
from dataclasses import replace

from executor.request import Request
from executor.secrets import REDACTOR, resolve_secret
from ingest.errors import BrokenInvariant, SecretMissing
from ingest.spec.snapshot import Auth, origin_of


def authenticate(request: Request, auth: Auth, origin: str) -> Request:
    """Return the request with its credential; raises `SecretMissing` if the reference cannot be resolved."""
    if auth.type == "NONE":
        return request
    if origin_of(request.url) != origin:
        raise BrokenInvariant(f"a credential of {origin} was about to go to {origin_of(request.url)}")
    secret = resolve_secret(auth.secret_ref)
    match auth.type:
        case "BEARER":
            _check_header(secret, auth.secret_ref)
            return request.with_headers((auth.name or "Authorization", f"{auth.prefix or 'Bearer '}{secret}"))
        case "BASIC":
            pair = f"{resolve_secret(auth.username_ref)}:{secret}" if auth.username_ref else f"{secret}:"
            REDACTOR.learn(pair)  # what travels is the pair's base64, not the secret's
            return request.with_headers(("Authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
        case "API_KEY":
            value = f"{auth.prefix}{secret}"
            if auth.location == "QUERY":
                return replace(request, query=(*request.query, (auth.name, value)))
            _check_header(secret, auth.secret_ref)
            return request.with_headers((auth.name, value))


def _check_header(secret: str, reference: str) -> None:
    """Refuse here what the HTTP library would refuse with the value in its message."""
    if not (secret.isascii() and secret.isprintable()):
        raise SecretMissing(f"{reference}: holds a character no header may hold, such as a line break")
