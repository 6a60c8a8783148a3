"""Simulator: a world behind a socket, served from a thread of this process.

It serves from the moment it is made until `close`, on the port `url` names. The direct methods do what
the control surface does, without HTTP.
"""

from collections.abc import Iterable, Mapping, Sequence
from threading import Thread
from types import TracebackType
from typing import Any, Self

from simulator.faults import read_rule
from simulator.handler import Handler
from simulator.listener import Listener
from simulator.world import (
    APIS,
    DEFAULT_REPOS,
    DEFAULT_SIZES,
    DEFAULT_SPAN,
    NOWHERE,
    PARTS,
    Mutation,
    Plan,
    World,
)


class Simulator:
    def __init__(  # noqa: PLR0913  # one line per thing a test may want to set
        self,
        *,
        seed: int = 7,
        port: int = 0,
        host: str = "127.0.0.1",
        sizes: Mapping[str, int] | None = None,
        span: tuple[str, str] = DEFAULT_SPAN,
        github_repos: Sequence[str] = DEFAULT_REPOS,
        mutate_every: int = 0,
        mutate_at: str = "now",
        warm: bool = False,
    ) -> None:
        """Serve `sizes` records per API (all of `DEFAULT_SIZES` if None, else none where not named).

        With `mutate_every` K, one record of an API changes after every K-th request to it. With `warm`,
        a thread writes all records ahead of the requests. Raises OSError if the port is taken and
        ValueError if there can be no such world.
        """
        plan = Plan(
            seed=seed,
            sizes=DEFAULT_SIZES if sizes is None else dict(sizes),
            span=span,
            repos=tuple(github_repos),
            mutate_every=mutate_every,
            mutate_at=mutate_at,
        )
        self.world = World(plan)
        bound = type("BoundHandler", (Handler,), {"world": self.world})
        self._listener = Listener(host, port, bound)
        self._listener.start()
        self._warmer: Thread | None = None
        if warm:
            self._warmer = Thread(target=self.world.warm, name="simulator-warm", daemon=True)
            self._warmer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._listener.url

    @property
    def port(self) -> int:
        return self._listener.server_port

    def close(self) -> None:
        """Stop serving and hang up on every client; a second call does nothing."""
        self.world.stop.set()
        self._listener.close()
        if self._warmer is not None:
            self._warmer.join()

    def truth(
        self,
        api: str,
        start: str | None = None,
        end: str | None = None,
        *,
        repo: str | None = None,
        full: bool = False,
        payloads: bool = False,
    ) -> dict[str, Any]:
        """Say what a complete and current copy of `api` (updated in `[start, end)`) holds."""
        return self.world.tell_truth(api, start, end, repo=repo, full=full, payloads=payloads)

    def find_body(self, api: str, id_: str) -> bytes | None:
        """Return the exact text in which `api` serves one record now."""
        return self.world.get_dataset(api).find_body(id_)

    def requests(
        self,
        api: str | None = None,
        *,
        last: int = 20,
        arrivals: bool = True,
        window_s: float | None = None,
    ) -> dict[str, Any]:
        """Summarize the requests to `api`, or to all of them by name if None."""
        if api is not None:
            return self.world.summarize(api, last=last, arrivals=arrivals, window_s=window_s)
        names = (*APIS, NOWHERE)
        return {name: self.requests(name, last=last, arrivals=arrivals, window_s=window_s) for name in names}

    def add_fault(self, api: str, kind: str | int, **rest: Any) -> int:
        """Add a fault rule (the fields of `faults.Rule`) and return its number."""
        if api != "*":
            self.world.get_dataset(api)
        return self.world.faults.add(read_rule({"api": api, "kind": kind, **rest}))

    def list_faults(self) -> list[dict[str, Any]]:
        return self.world.faults.list_rules()

    def clear_faults(self) -> None:
        self.world.faults.clear()

    def mutate(
        self,
        api: str,
        count: int = 1,
        *,
        add: int = 0,
        at: str = "now",
        start: str | None = None,
        end: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Change `count` records (of those updated in `[start, end)`, or exactly `ids`) and add `add`."""
        return self.world.mutate(api, Mutation(count=count, add=add, at=at, start=start, end=end, ids=ids))

    def mutate_every(self, api: str, every: int, *, count: int = 1, add: int = 0, at: str = "now") -> None:
        """Mutate after every `every`-th request to `api`; 0 ends it."""
        self.world.mutate_every(api, every, Mutation(count=count, add=add, at=at))

    def limit(self, api: str, *windows: tuple[int, float]) -> None:
        """Enforce sliding windows, each (requests, seconds), on `api`; none lifts the limit."""
        self.world.get_dataset(api)
        self.world.limits.set(api, windows)

    def reset(self, only: Iterable[str] = PARTS) -> None:
        """Go back to the start, or only the named ones of data, faults, limits and requests."""
        self.world.reset(only)
