"""Every error the system raises on purpose, named for what to do next.

IngestError
  OperatorError     a person must change something; never retried
    SpecInvalid       a source file or a compiled spec is wrong; carries all problems
    SecretMissing     a credential reference cannot be resolved                        (L4)
    DatabaseAway      no database answers at the address given
    NotFound          no such source, run, series ...
    RefusedByState    the system is in a state that forbids it (paused, running ...)
    ValueRefused      a value a person gave is outside what is allowed; carries `code` for other languages
  SourceError       the other end; carries status and a redacted excerpt
    Retryable         back off and spend an attempt                                    (L1)
    Deferred          not a failure, spends no attempt; carries `wait_seconds`         (L1)
      Throttled         the source itself asked for the wait
    Refused           will not succeed by asking again                                 (L2)
    CredentialRefused the credential itself is dead; nothing with it can succeed       (L4)
    Closed            the source is closed to us until a person acts                   (L4)
    Unreadable        answered, but not what the spec says                             (L2)
  RequestInvalid    our own template or value; the request was never sent             (L2)
  RecordRejected    one record; quarantined, the page goes on                          (L3)
  LeaseLost         stop quietly: someone else has the task
  BrokenInvariant   our bug
"""

from typing import ClassVar


class IngestError(Exception):
    """Root of the tree; `level` is the error level of S2 §12 where one applies."""

    level: ClassVar[str] = ""


class OperatorError(IngestError):
    """Someone must change something; the text says what."""

    exit_code: ClassVar[int] = 1


class SpecInvalid(OperatorError):
    """A declaration is wrong. `problems` holds every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class SettingsInvalid(OperatorError):
    """A setting in the environment or ingest.toml is wrong."""

    exit_code = 2


class SecretMissing(OperatorError):
    """A credential reference cannot be resolved here."""

    level = "L4"


class DatabaseAway(OperatorError):
    """No database answers at the address given."""

    exit_code = 5


class NotFound(OperatorError):
    """There is no such thing."""

    exit_code = 4


class RefusedByState(OperatorError):
    """The state of the system forbids it now."""

    exit_code = 6


class ValueRefused(OperatorError):
    """A value is outside what is allowed; the text says what is. `code` names the rule, for other languages."""

    exit_code = 2

    def __init__(self, message: str, *, code: str = "range") -> None:
        super().__init__(message)
        self.code = code


class SourceError(IngestError):
    """The other end answered badly or not at all."""

    def __init__(self, message: str, *, status: int | None = None, excerpt: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.excerpt = excerpt


class Retryable(SourceError):
    """Back off and try again; spends an attempt. `wait_seconds` is what the source asked for, if it did."""

    level = "L1"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        excerpt: str | None = None,
        wait_seconds: float | None = None,
    ) -> None:
        super().__init__(message, status=status, excerpt=excerpt)
        self.wait_seconds = wait_seconds


class Deferred(SourceError):
    """Not now: the task goes back with a later `scheduled_at` and no attempt is spent."""

    level = "L1"

    def __init__(self, message: str, *, wait_seconds: float) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class Throttled(Deferred):
    """Not now, says the source itself; told apart because one that says so for ever has to be seen."""


class Refused(SourceError):
    """The source said no and will say no again."""

    level = "L2"


class CredentialRefused(SourceError):
    """The credential is dead: everything that uses it would fail too."""

    level = "L4"


class Closed(SourceError):
    """A response rule calls the answer fatal: nothing asked of this source can succeed until a person acts."""

    level = "L4"


class Unreadable(SourceError):
    """The source answered, but not in the shape the spec declares."""

    level = "L2"


class RequestInvalid(IngestError):
    """A template failed or rendered a value that must not be sent; nothing was sent."""

    level = "L2"


class RecordRejected(IngestError):
    """One record cannot be stored; it goes to quarantine and the page goes on."""

    level = "L3"

    def __init__(self, reason: str, *, path: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason
        self.path = path


class LeaseLost(IngestError):
    """The fence did not match: another worker has the task, or it was cancelled. Nothing was written."""


class BrokenInvariant(IngestError):
    """Our own bug; must be seen."""
