"""World: the APIs with their records, faults, limits and journal; everything but the sockets.

Each request is written down, checked against the limit, offered to the fault rules and answered, in
this order. The same seed and sizes give the same world.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any

from simulator.answers import (
    Answer,
    Api,
    BadRequest,
    Delivery,
    Headers,
    NoSuchPath,
    Request,
    Twist,
    Unauthorized,
    answer_json,
    set_headers,
)
from simulator.binance import FUNDING, KLINES, Binance
from simulator.biorxiv import BioRxiv
from simulator.crossref import Crossref
from simulator.dataset import Dataset
from simulator.europepmc import EuropePmc
from simulator.faults import FaultBook, Rule
from simulator.github import GitHub
from simulator.instants import parse_bound, parse_window
from simulator.journal import Entry, Journal
from simulator.limits import Limits
from simulator.oai import Oai
from simulator.plain import Plain
from simulator.pubmed import PubMed
from simulator.shopify import Shopify
from simulator.stripe import Stripe
from simulator.tushare import TABLES, TuShare

# What has records, faults, limits and a journal of its own. TuShare and Binance are several behind one address, as
# both count requests by the table that is asked for.
APIS = (
    "crossref", "pubmed", "github", "plain", "europepmc", "oai", "biorxiv", "stripe", "shopify",
    "tushare_stock_basic", "tushare_daily", "tushare_adj_factor", "tushare_daily_basic",
    "binance_klines", "binance_funding",
)  # fmt: skip
DEFAULT_SIZES = {
    "crossref": 25_000, "pubmed": 12_400, "github": 300, "plain": 5_000,
    "europepmc": 2_000, "oai": 1_000, "biorxiv": 600, "stripe": 1_000, "shopify": 1_000,
    "tushare_stock_basic": 20, "tushare_daily": 800, "tushare_adj_factor": 800, "tushare_daily_basic": 800,
    "binance_klines": 3_000, "binance_funding": 360,
}  # fmt: skip
DEFAULT_SPAN = ("2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z")
DEFAULT_REPOS = ("acme/widgets",)
PARTS = ("data", "faults", "limits", "requests")
NOWHERE = "none"  # the journal's name for requests to paths that no API has


@dataclass(frozen=True, slots=True)
class Plan:
    """What a world is made from. An API that `sizes` does not name is empty."""

    seed: int
    sizes: Mapping[str, int]
    span: tuple[str, str] = DEFAULT_SPAN
    repos: tuple[str, ...] = DEFAULT_REPOS
    mutate_every: int = 0
    mutate_at: str = "now"

    def __post_init__(self) -> None:
        for name in self.sizes:
            if name not in APIS:
                raise ValueError(f"unknown API {name!r}; known: {', '.join(APIS)}")
        low, high = parse_window(*self.span)
        if low >= high:
            raise ValueError(f"the span must end after it starts: {self.span[0]} to {self.span[1]}")
        if not self.repos:
            raise ValueError("GitHub needs at least one repository")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change to some records of an API; with `every`, again after so many requests to it."""

    count: int = 1
    add: int = 0
    at: str = "now"
    start: str | None = None  # change only records updated in [start, end)
    end: str | None = None
    ids: Sequence[str] | None = None


@dataclass(slots=True)
class _Habit:
    every: int
    mutation: Mutation
    requests: int = 0


class World:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.stop = Event()
        self.faults = FaultBook(plan.seed)
        self.limits = Limits()
        self.journal = Journal()
        self._github = GitHub(plan.repos)
        self._apis: dict[str, Api] = {
            "crossref": Crossref(plan.seed), "pubmed": PubMed(), "github": self._github, "plain": Plain(),
            "europepmc": EuropePmc(plan.seed), "oai": Oai(plan.seed), "biorxiv": BioRxiv(),
            "stripe": Stripe(), "shopify": Shopify(plan.seed),
            **{f"tushare_{table}": TuShare(plan.seed, table) for table in TABLES},
            "binance_klines": Binance(KLINES), "binance_funding": Binance(FUNDING),
        }  # fmt: skip
        self._lock = Lock()
        self._datasets: dict[str, Dataset] = {}
        self._habits: dict[str, _Habit] = {}
        self._make_data()

    def answer(self, request: Request, arrived: float) -> tuple[Answer, Delivery, Entry]:
        """Answer one request that arrived at the monotonic time `arrived`."""
        name = _name_api(request)
        api = self._apis.get(name)
        entry = self.journal.arrive(name if api else NOWHERE, request, arrived)
        if api is None:
            answer = answer_json({"error": f"nothing here; try /{', /'.join(APIS)} or /_sim/health"}, 404)
            self.journal.decide(entry, answer, None)
            return answer, Delivery(), entry
        answer, delivery, fault = self._answer(name, api, request, arrived)
        self.journal.decide(entry, answer, fault)
        self._keep_habit(name)
        return answer, delivery, entry

    def get_dataset(self, api: str) -> Dataset:
        """Return the records of `api`; raises ValueError if there is no such API."""
        if api not in self._datasets:
            raise ValueError(f"unknown API {api!r}; known: {', '.join(APIS)}")
        return self._datasets[api]

    def tell_truth(
        self,
        api: str,
        start: str | None = None,
        end: str | None = None,
        *,
        repo: str | None = None,
        full: bool = False,
        payloads: bool = False,
    ) -> dict[str, Any]:
        """Say what a complete copy of `api` (updated in `[start, end)`) holds now."""
        if repo is not None and (api != "github" or repo not in self.plan.repos):
            raise ValueError(f"no such repository: {repo}")
        keep = self._github.keep_only(repo) if repo is not None else None
        window = parse_window(start, end)
        return self.get_dataset(api).tell_truth(window, full=full, payloads=payloads, keep=keep)

    def mutate(self, api: str, mutation: Mutation) -> dict[str, Any]:
        """Change and add records; return the ids of both."""
        at = int(time.time()) if mutation.at == "now" else parse_bound(mutation.at)
        changed, added = self.get_dataset(api).mutate(
            count=mutation.count,
            add=mutation.add,
            at=at,
            window=parse_window(mutation.start, mutation.end),
            ids=mutation.ids,
        )
        return {"changed": changed, "added": added}

    def mutate_every(self, api: str, every: int, mutation: Mutation) -> None:
        """Make the mutation after every `every`-th request to `api`; 0 ends it."""
        self.get_dataset(api)
        with self._lock:
            self._habits.pop(api, None)
            if every > 0:
                self._habits[api] = _Habit(every, mutation)

    def summarize(
        self, api: str, *, last: int = 20, arrivals: bool = True, window_s: float | None = None
    ) -> dict[str, Any]:
        """Say what requests came to `api`, with its limit and, if asked, its worst window."""
        if api != NOWHERE:
            self.get_dataset(api)
        summary = self.journal.summarize(api, last=last, arrivals=arrivals)
        summary["limits"] = self.limits.list_windows(api)
        summary["violations"] = self.limits.count_violations(api)
        if window_s is not None:
            summary["worst_window"] = self.journal.count_worst_window(api, window_s)
        return summary

    def reset(self, only: Iterable[str] = PARTS) -> None:
        """Go back to the start; `only` names the parts, all of them by default."""
        parts = set(only)
        if unknown := parts - set(PARTS):
            raise ValueError(f"unknown part {min(unknown)!r}; known: {', '.join(PARTS)}")
        if "data" in parts:
            self._make_data()
        if "faults" in parts:
            self.faults.clear()
        if "limits" in parts:
            self.limits.clear()
        if "requests" in parts:
            self.journal.clear()

    def warm(self) -> None:
        """Make the text of every record ahead of the first request, until `stop`."""
        for dataset in list(self._datasets.values()):
            dataset.warm(self.stop)

    def _answer(self, name: str, api: Api, request: Request, arrived: float) -> tuple[Answer, Delivery, str | None]:
        allowance = self.limits.admit(name, arrived)
        headers = api.describe_allowance(allowance) if allowance else ()
        if allowance and allowance.wait_s > 0:
            refusal = api.refuse(429, "too many requests", str(allowance.limit))
            wait: Headers = (("Retry-After", str(math.ceil(allowance.wait_s))),)
            if refusal.status == 200:
                wait = ()  # who hides a refusal in a success says nothing of waiting either
            headers = set_headers(set_headers(wait, refusal.headers), headers)  # an API may have its own Retry-After
            return replace(refusal, headers=headers), Delivery(), "limit"
        rule = self.faults.take(name, request.target, first_page=api.is_first_page(request))
        answer = self._make_answer(name, api, request, rule)
        answer = replace(answer, headers=set_headers(answer.headers, headers))
        if rule is None:
            return answer, Delivery(), None
        answer = rule.change(answer)
        return answer, rule.deliver(answer), rule.kind

    def _make_answer(self, name: str, api: Api, request: Request, rule: Rule | None) -> Answer:
        if rule is not None and rule.replaces_page:
            status = rule.get_status() or (429 if rule.kind == "throttle" else 500)
            return api.refuse(status, "this request was chosen to fail")
        try:
            return api.answer(self._datasets[name], request, rule.twist if rule else Twist())
        except NoSuchPath:
            return api.refuse(404, "no such path", request.path)
        except Unauthorized:
            return api.refuse(401, "no credentials")
        except BadRequest as error:
            return api.refuse(400, error.reason, error.value)

    def _keep_habit(self, api: str) -> None:
        with self._lock:
            habit = self._habits.get(api)
            if habit is None:
                return
            habit.requests += 1
            due = habit.requests % habit.every == 0
        if due:
            self.mutate(api, habit.mutation)

    def _make_data(self) -> None:
        span = parse_window(*self.plan.span)
        datasets = {
            name: Dataset(
                shape=self._apis[name].shape,
                seed=self.plan.seed,
                size=self.plan.sizes.get(name, 0),
                span=span,
            )
            for name in APIS
        }
        every, mutation = self.plan.mutate_every, Mutation(at=self.plan.mutate_at)
        with self._lock:
            self._datasets.update(datasets)
            self._habits = {name: _Habit(every, mutation) for name in APIS} if every > 0 else {}


def _name_api(request: Request) -> str:
    """Return which API a request is for: by its path, and where one address serves several tables, by what it asks."""
    name = request.path.split("/", 2)[1]
    if name == "tushare":
        table = request.params.get("api_name", "")
        return f"tushare_{table if table in TABLES else 'daily'}"
    if name == "binance":
        return "binance_funding" if request.path == FUNDING.path else "binance_klines"
    return name
