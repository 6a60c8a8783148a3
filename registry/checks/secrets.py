"""Checks that no secret is written where it would be stored, hashed, shown or sent as plain text (A6, B10)."""

import re
from collections.abc import Iterator

from registry.checks.credentials import HOW_TO_REFER
from registry.checks.subject import Subject, Text
from registry.problems import Finding

# Vendors mark their keys on purpose, so that such a check can find them.
_MARKED = re.compile(
    r"\b(sk|pk|rk)_(live|test)_[0-9A-Za-z]{8,}|\bgh[opsu]_[0-9A-Za-z]{20,}|\bgithub_pat_[0-9A-Za-z_]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[0-9A-Za-z-]{10,}|\bglpat-[0-9A-Za-z_-]{16,}|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_NAMES = re.compile(
    r"(^|[-_.])(api[-_]?key|apikey|access[-_]?key|access[-_]?token|auth[-_]?token|api[-_]?token|secret|client[-_]?secret"
    r"|password|passwd|authorization|private[-_]?key)$",
    re.IGNORECASE,
)
_WALK = re.compile(r"^\{\{\s*(page|window)\.[a-z]+\s*\}\}$")
_REFERENCE = re.compile(r"^\s*(env|file|secret):\S")
_RANDOM = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9_+/=-]{32,}")


def check_secrets(subject: Subject) -> Iterator[Finding]:
    """Neither parameters nor vars hold a credential."""
    for text in subject.texts():
        yield from _check_text(text)
    for name, value in subject.merged.get("vars", {}).items():
        where = (*(value.prefix or ()), "vars", name)
        yield from _check_text(Text(where, name, str(value.value)))


def _check_text(text: Text) -> Iterator[Finding]:
    if _REFERENCE.match(text.text):
        message = "a credential reference here would be sent as text"
        hint = "use 'auth': it places the value"
        yield Finding(code="secret-in-template", where=text.where, message=message, hint=hint)
    elif _MARKED.search(text.text) or (_NAMES.search(text.name) and text.text and not _WALK.match(text.text)):
        yield Finding(
            code="literal-secret",
            where=text.where,
            message="looks like a literal secret",
            hint=f"use 'auth': {HOW_TO_REFER}",
            sensitive=True,
        )
    elif _RANDOM.fullmatch(text.text):
        yield Finding(
            code="literal-secret",
            where=text.where,
            message="looks random: if it is a secret it must not stand here",
            hint=f"use 'auth': {HOW_TO_REFER}",
            severity="warning",
            sensitive=True,
        )
