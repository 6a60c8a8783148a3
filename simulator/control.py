"""Control: the `/_sim/` surface, by which another process asks for truth and orders faults.

Its requests are not journalled, limited or faulted. A wrong order is answered 400 with
`{"error": why}` and changes nothing.
"""

import json
from collections.abc import Callable
from typing import Any

from simulator.answers import Answer, Request, answer_json
from simulator.faults import read_rule
from simulator.world import APIS, NOWHERE, PARTS, Mutation, World

_MUTATION_FIELDS = {"count", "add", "at", "from", "to", "ids"}


def answer_control(world: World, request: Request) -> Answer:
    """Answer a request to `/_sim/...`."""
    parts = request.path.strip("/").split("/")[1:]
    handler = _ROUTES.get((request.method, parts[0] if parts else ""))
    if handler is None or len(parts) > (2 if parts[0] == "truth" else 1):
        routes = ", ".join(f"{method} /_sim/{name}" for method, name in _ROUTES)
        return answer_json({"error": f"no such control; there are {routes}"}, 404)
    try:
        return answer_json(handler(world, request, parts[1:]))
    except KeyError as error:
        return answer_json({"error": f"missing or unknown: {error.args[0]}"}, 400)
    except (ValueError, TypeError) as error:
        return answer_json({"error": str(error)}, 400)


def _get_health(world: World, request: Request, rest: list[str]) -> object:
    plan = world.plan
    return {
        "status": "ok",
        "seed": plan.seed,
        "span": list(plan.span),
        "records": {api: len(world.get_dataset(api)) for api in APIS},
        "github_repos": list(plan.repos),
    }


def _get_truth(world: World, request: Request, rest: list[str]) -> object:
    params = request.params
    return world.tell_truth(
        rest[0] if rest else params["api"],
        params.get("from"),
        params.get("to"),
        repo=params.get("repo"),
        full=params.get("full", "0") == "1",
        payloads=params.get("payloads", "0") == "1",
    )


def _get_requests(world: World, request: Request, rest: list[str]) -> object:
    params = request.params
    window_s = float(params["window_s"]) if "window_s" in params else None
    last, arrivals = int(params.get("last", "20")), params.get("arrivals", "1") == "1"
    if "api" in params:
        return world.summarize(params["api"], last=last, arrivals=arrivals, window_s=window_s)
    return {api: world.summarize(api, last=last, arrivals=arrivals, window_s=window_s) for api in (*APIS, NOWHERE)}


def _get_faults(world: World, request: Request, rest: list[str]) -> object:
    return {"rules": world.faults.list_rules()}


def _post_faults(world: World, request: Request, rest: list[str]) -> object:
    value = _read_json(request)
    rules = [read_rule(item) for item in (value if isinstance(value, list) else [value])]
    for rule in rules:
        if rule.api != "*":
            world.get_dataset(rule.api)
    for rule in rules:
        world.faults.add(rule)
    return {"rules": world.faults.list_rules()}


def _delete_faults(world: World, request: Request, rest: list[str]) -> object:
    world.faults.clear()
    return {"rules": []}


def _post_mutate(world: World, request: Request, rest: list[str]) -> object:
    order = _read_object(request)
    api, every = str(order.pop("api")), order.pop("every", None)
    if unknown := sorted(set(order) - _MUTATION_FIELDS):
        raise ValueError(f"unknown field {unknown[0]!r}; known: api, every, {', '.join(sorted(_MUTATION_FIELDS))}")
    mutation = Mutation(
        count=int(order.get("count", 0 if "add" in order else 1)),
        add=int(order.get("add", 0)),
        at=str(order.get("at", "now")),
        start=order.get("from"),
        end=order.get("to"),
        ids=order.get("ids"),
    )
    if every is not None:
        world.mutate_every(api, int(every), mutation)
        return {"api": api, "every": int(every)}
    done = world.mutate(api, mutation)
    return {"api": api, **done, "truth": world.tell_truth(api)}


def _post_limit(world: World, request: Request, rest: list[str]) -> object:
    order = _read_object(request)
    api = str(order["api"])
    world.get_dataset(api)
    windows = order.get("windows")
    if windows is None:
        windows = [] if order["limit"] is None else [order]
    world.limits.set(api, [(int(window["limit"]), float(window["window_s"])) for window in windows])
    return {"api": api, "windows": world.limits.list_windows(api)}


def _post_reset(world: World, request: Request, rest: list[str]) -> object:
    order = _read_object(request) if request.body else {}
    only = order.get("only", list(PARTS))
    world.reset(only)
    return {"reset": only}


def _read_json(request: Request) -> Any:
    try:
        return json.loads(request.body)
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None


def _read_object(request: Request) -> dict[str, Any]:
    value = _read_json(request)
    if not isinstance(value, dict):
        raise ValueError("the body must be a JSON object")
    return value


_ROUTES: dict[tuple[str, str], Callable[[World, Request, list[str]], object]] = {
    ("GET", "health"): _get_health,
    ("GET", "truth"): _get_truth,
    ("GET", "requests"): _get_requests,
    ("GET", "faults"): _get_faults,
    ("POST", "faults"): _post_faults,
    ("DELETE", "faults"): _delete_faults,
    ("POST", "mutate"): _post_mutate,
    ("POST", "limit"): _post_limit,
    ("POST", "reset"): _post_reset,
}
