"""Back-off: from (policy, attempt) to seconds to wait (pure; B12)."""

from ingest.spec.snapshot import Retry


def delay_after(retry: Retry, attempt: int, chance: float) -> float:
    """Return the wait after the given attempt (1 is the first); `chance` in [0, 1) spreads it by the jitter."""
    match retry.policy:
        case "fixed":
            delay = retry.base_s
        case "linear":
            delay = retry.base_s * attempt
        case "exponential" | "exponential_jitter":
            delay = retry.base_s * retry.factor ** min(attempt - 1, 50)  # long past any cap, short of an overflow
    delay = min(delay, retry.cap_s)
    if retry.policy == "exponential_jitter":
        delay *= 1 + retry.jitter * (2 * chance - 1)
    return min(delay, retry.cap_s)
