"""Running now: what a person asks for outside every schedule, refused where the system's state forbids it."""

import uuid

from ingest.db import Database
from ingest.errors import NotFound, RefusedByState
from ingest.states import Operation
from ingest.store import audit, plans, schedules
from ingest.store.views import list_endpoints


def request_run(database: Database, *, source: str, endpoint: str, actor: str, reason: str = "") -> int:
    """Ask for a harvest now and say so in the audit trail; return the fire's id.

    Raises `NotFound` for an endpoint nobody registered and `RefusedByState` for one that is disabled or held.
    """
    name = f"{source}.{endpoint}"
    with database.transaction() as conn:
        known = {found.name: found for found in list_endpoints(conn)}
        if name not in known:
            raise NotFound(f"no endpoint {name}")
        if not known[name].enabled:
            raise RefusedByState(f"{name} is disabled in its source file: set `enabled: true` and apply it")
        held = plans.find_hold(conn, source=source, endpoint=endpoint)
        if held is not None:
            raise RefusedByState(f"{name} is held: {held}")
        request_id = uuid.uuid4().hex
        fire_id = schedules.request_run(
            conn,
            source=source,
            endpoint=endpoint,
            operation=Operation.HARVEST,
            request_id=request_id,
            params={"actor": actor},
        )
        audit.record(
            conn, actor=actor, action="run", target=name, detail={"schedule_instance_id": fire_id}, reason=reason
        )
    return fire_id
