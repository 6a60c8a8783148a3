"""Secrets: from a reference (env:NAME, file:/path) to its value, at send time, in executors only (B1).

Invariant: a value leaves this module only into a request; `Redactor` knows every value that did and blanks it out of
whatever is stored or logged, in the encodings it can appear in.
"""

import base64
import json
import os
import re
import threading
from pathlib import Path
from urllib.parse import quote, quote_plus

from ingest.errors import SecretMissing
from ingest.spec.references import belongs_to_installation

_BLANK = "[secret]"
_SAMPLE = 1024
_LONGEST = 65_536
_NOT_FILES = ("/proc/", "/sys/", "/dev/")  # file:/proc/self/environ would be every secret at once


class Redactor:
    """Every secret value this process has used."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def learn(self, value: str) -> None:
        """Remember the value in all its spellings; longest first, so no tail is left."""
        if len(value) < 4:
            return  # shorter ones would blank half of every text
        encoded = value.encode()
        quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
        based = {base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(encoded).decode()}
        spellings = {
            value,
            *quoted,
            *(re.sub("%..", lambda code: code[0].lower(), text) for text in quoted),
            *based,
            *(text.rstrip("=") for text in based),
            *(json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)),
        }
        with self._lock:
            self._values = tuple(sorted({*self._values, *spellings}, key=len, reverse=True))

    def clean(self, text: str) -> str:
        """Return the text without any secret."""
        for value in self._values:
            if value in text:
                text = text.replace(value, _BLANK)
        return text

    def sample(self, body: bytes) -> str:
        """Return the beginning of a body as it may be stored: at most 1 KB, no secret, no NUL."""
        # cleaned before it is cut, or half of a secret at the cut would stay
        longest = len(self._values[0]) if self._values else 0
        text = self.clean(body[: 4 * (_SAMPLE + longest)].decode("utf-8", "replace"))
        return text[:_SAMPLE].replace("\x00", "\ufffd")


REDACTOR = Redactor()


def resolve_secret(reference: str) -> str:
    """Return the secret the reference names; read each time, so a rotated one serves running plans too."""
    scheme, _, name = reference.partition(":")
    match scheme:
        case "env" if belongs_to_installation(reference):
            raise SecretMissing(f"{reference}: belongs to the installation, not to a source")
        case "env":
            value = os.environ.get(name)
            if not value:
                raise SecretMissing(f"{reference}: the executor's environment has no {name}")
        case "file":
            value = _read_file(reference, Path(name))
        case _:
            raise SecretMissing(f"{reference}: write env:NAME or file:/path")
    if not value.isprintable():  # bytes that are not UTF-8 are surrogates here, and not printable
        # one line of text is a secret; a settings file, a key ring or an environment is not
        raise SecretMissing(f"{reference}: holds a line break or a control character")
    REDACTOR.learn(value)
    return value


def _read_file(reference: str, path: Path) -> str:
    try:
        real = path.resolve(strict=True)
        if not real.is_file() or f"{real}/".startswith(_NOT_FILES):
            raise SecretMissing(f"{reference}: not a plain file")
        with real.open(encoding="utf-8") as file:
            value = file.read(_LONGEST + 1).strip()
    except OSError as error:
        raise SecretMissing(f"{reference}: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, or a NUL in the path; the text may hold the secret, so it is not quoted
        raise SecretMissing(f"{reference}: not a text file") from error
    if not value or len(value) > _LONGEST:
        raise SecretMissing(f"{reference}: the file is {'too large' if value else 'empty'}")
    return value
