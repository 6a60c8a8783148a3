"""Back-off: how long after which attempt."""

from typing import Any

import pytest

from executor.backoff import delay_after
from ingest.spec.snapshot import Retry


def delays(count: int = 4, chance: float = 0.5, **values: Any) -> list[float]:
    return [round(delay_after(Retry(**values), attempt, chance), 3) for attempt in range(1, count + 1)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"policy": "fixed", "base_s": 5.0}, [5, 5, 5, 5]),
        ({"policy": "linear", "base_s": 2.0, "cap_s": 5.0}, [2, 4, 5, 5]),
        ({"policy": "exponential", "base_s": 3.0}, [3, 6, 12, 24]),
        ({"policy": "exponential", "base_s": 3.0, "cap_s": 10.0}, [3, 6, 10, 10]),
        ({}, [0.1, 0.2, 0.4, 0.8]),
    ],
)
def test_each_policy_waits_as_it_says(policy: dict[str, Any], expected: list[float]) -> None:
    assert delays(**policy) == expected


def test_jitter_spreads_by_its_share_and_no_further() -> None:
    assert delays(1, chance=0.0) == [0.08]
    assert delays(1, chance=0.999999) == [0.12]
    assert delays(1, chance=0.0, policy="exponential") == [0.1]


def test_no_wait_is_above_the_cap() -> None:
    assert delays(1, chance=0.999999, base_s=30.0) == [30.0]


def test_a_late_attempt_does_not_overflow() -> None:
    assert delay_after(Retry(factor=100.0), 100_000, 0.5) == 30.0
