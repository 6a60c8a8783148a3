"""All checks of an endpoint, in the order they are told (A4). The same ones run at apply and again in the planner."""

from collections.abc import Callable, Iterator

from registry.checks.credentials import check_credential
from registry.checks.limits import check_limits
from registry.checks.lints import check_lints
from registry.checks.names import check_codes, check_names
from registry.checks.pagination import check_pagination
from registry.checks.partitions import check_partition
from registry.checks.records import check_paths, check_records
from registry.checks.request import check_origin, check_request
from registry.checks.responses import check_responses
from registry.checks.secrets import check_secrets
from registry.checks.subject import Subject
from registry.checks.templates import check_templates
from registry.checks.windows import check_window
from registry.problems import Finding

CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    check_names,
    check_codes,
    check_origin,
    check_request,
    check_templates,
    check_secrets,
    check_credential,
    check_pagination,
    check_window,
    check_partition,
    check_records,
    check_paths,
    check_responses,
    check_limits,
    check_lints,
)


def run_checks(subject: Subject) -> list[Finding]:
    """Return everything the checks find."""
    return [finding for check in CHECKS for finding in check(subject)]
