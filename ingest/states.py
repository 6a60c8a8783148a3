"""The states of everything that has one: one StrEnum per CHECK constraint (REQUIREMENTS D10).

A test compares each enum with its constraint in the database; docs/states.md draws the arrows.
"""

from enum import StrEnum


class PlanStatus(StrEnum):
    """DRAFT → SLICING → READY | PARTIAL | FAILED; PARTIAL → SLICING; any but FAILED → CANCELLED."""

    DRAFT = "DRAFT"
    SLICING = "SLICING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class SliceStatus(StrEnum):
    """PENDING → READY | FAILED; READY → PARTIAL (re-sliced); → CANCELLED."""

    PENDING = "PENDING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TaskStatus(StrEnum):
    """QUEUED → DISPATCHED → EXECUTING → a terminal state; DISPATCHED | EXECUTING → QUEUED."""

    QUEUED = "QUEUED"
    DISPATCHED = "DISPATCHED"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class RunStatus(StrEnum):
    """PLANNED → RUNNING → SUCCEEDED | PARTIAL | FAILED | CANCELLED."""

    PLANNED = "PLANNED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class BatchStatus(StrEnum):
    """A page is one transaction, so only endings are ever stored."""

    SUCCEEDED = "SUCCEEDED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


class Operation(StrEnum):
    """What a plan is for."""

    HARVEST = "HARVEST"
    BACKFILL = "BACKFILL"
    UPDATE = "UPDATE"
    CALL = "CALL"


class Trigger(StrEnum):
    """What started a plan."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"


class FireResult(StrEnum):
    """How one fire of a schedule ended: PLANNED work, NOTHING to do, SKIPPED, or FAILED to compile."""

    FIRED = "FIRED"
    PLANNED = "PLANNED"
    NOTHING = "NOTHING"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


class SlicePurpose(StrEnum):
    """FILL adds coverage and may not overlap another open FILL; WALK reads a series without a time filter."""

    FILL = "FILL"
    WALK = "WALK"


class CursorType(StrEnum):
    """How a cursor's values compare."""

    TIME = "TIME"
    ID = "ID"
    TOKEN = "TOKEN"


class NamespaceScope(StrEnum):
    """Whose cursor it is: '' for GLOBAL, the series for EXPR, a plan or campaign for CUSTOM."""

    GLOBAL = "GLOBAL"
    EXPR = "EXPR"
    CUSTOM = "CUSTOM"


class Direction(StrEnum):
    """Which way a cursor moves."""

    FORWARD = "FORWARD"
    BACKFILL = "BACKFILL"


class CursorEventKind(StrEnum):
    """PAGE events are evidence; only WINDOW events move a TIME cursor."""

    PAGE = "PAGE"
    WINDOW = "WINDOW"


class HoldScope(StrEnum):
    """What a hold stops."""

    SOURCE = "SOURCE"
    ENDPOINT = "ENDPOINT"
    CREDENTIAL = "CREDENTIAL"


class HoldKind(StrEnum):
    """Who may lift it: MANUAL and FATAL a person, CIRCUIT time."""

    MANUAL = "MANUAL"
    FATAL = "FATAL"
    CIRCUIT = "CIRCUIT"


class ProcessKind(StrEnum):
    """Which daemon."""

    PLANNER = "PLANNER"
    EXECUTOR = "EXECUTOR"


# Smaller is more urgent (REQUIREMENTS E1).
PRIORITY = {Operation.HARVEST: 100, Operation.UPDATE: 200, Operation.BACKFILL: 300, Operation.CALL: 100}
