"""REST, request by request, and the metrics beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from tests.doors.matrix.answers import Answer, Door, agreeing, listed
from tests.doors.matrix.http_client import HttpConnection

from angarium.api.quotas import QuotaSubject
from angarium.doors.http.publish_requests import PRODUCER_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.http_client import HttpAnswer
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode


class Call(NamedTuple):
    """How a method is asked for."""

    asked: str
    """Method and path; the path's variables are arguments by name."""
    body: Callable[[Mapping[str, Any]], object] | None = None
    query: Callable[[Mapping[str, Any]], Mapping[str, object]] | None = None
    headers: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None


def _picked(*names: str) -> Callable[[Mapping[str, Any]], object]:
    """Return what makes a body of arguments of the same names."""
    return lambda given: {name: msgspec.to_builtins(given[name]) for name in names if name in given}


def _config(given: Mapping[str, Any]) -> object:
    return {"dead_letter_topic": given["config"].dead_letter_topic}


RECORDS: Final = "/v1/topics/{topic}/partitions/{partition}"
QUOTA: Final = "/v1/quotas/{subject_kind}/{subject}"
QUOTA_OF_ALL: Final = "/v1/quotas/default"

METHODS: Final[dict[str, list[Call]]] = {
    "publish": [
        Call("POST /v1/topics/{topic}/records", lambda _: {"value": "x"}),
        Call("POST /v1/topics/{topic}/records/batch", lambda _: {"records": [{"value": "x"}]}),
    ],
    "publish_sequenced": [
        Call(
            "POST /v1/topics/{topic}/records",
            lambda _: {"value": "x"},
            headers=lambda given: {
                "Angarium-Sequence": f"{given['request'].producer}:{given['request'].sequence}"
            },
        )
    ],
    "fetch": [
        Call(f"GET {RECORDS}/records", query=lambda _: {"offset": 0}),
        Call(f"GET {RECORDS}/records/{{offset}}"),
    ],
    "find_offset": [Call(f"GET {RECORDS}/offset", query=lambda _: {"at": "earliest"})],
    "open_producer": [Call("POST /v1/producers", _picked("name"))],
    "create_topic": [Call("POST /v1/topics", _picked("name", "partitions"))],
    "alter_topic": [
        Call("PATCH /v1/topics/{name}", lambda _: {"config": {"retention_ms": 86_400_000}})
    ],
    "delete_topic": [Call("DELETE /v1/topics/{name}")],
    "list_topics": [Call("GET /v1/topics")],
    "describe_topic": [Call("GET /v1/topics/{name}")],
    "cluster_status": [Call("GET /v1/cluster")],
    "drain_node": [Call("POST /v1/cluster/nodes/{node}/drain", _picked("draining"))],
    "remove_node": [Call("DELETE /v1/cluster/nodes/{node}")],
    "transfer_leader": [Call(f"POST {RECORDS}/leader", _picked("to"))],
    "raise_level": [Call("POST /v1/cluster/level", lambda _: {})],
    "describe_balance": [Call("GET /v1/cluster/balance")],
    "rebalance": [Call("POST /v1/cluster/balance", _picked("bytes_per_s"))],
    "cancel_rebalance": [Call("DELETE /v1/cluster/balance")],
    "set_auto_balance": [Call("PATCH /v1/cluster/balance", _picked("automatic"))],
    "describe_upgrade": [Call("GET /v1/cluster/upgrade")],
    "describe_recovery": [Call(f"GET {RECORDS}/recovery")],
    "recover_partition": [Call(f"POST {RECORDS}/recovery", _picked("code"))],
    "settle": [
        Call(
            "POST /v1/groups/{group}/settle",
            lambda given: {
                "member": given["member"],
                "settlements": [
                    {"topic": one.topic, "partition": 0, "verb": "ack", "ranges": [0, 1]}
                    for one in given["settlements"]
                ],
            },
        )
    ],
    "report_checkpoints": [
        Call(
            "POST /v1/groups/{group}/checkpoints",
            lambda given: {
                "checkpoints": [
                    {"topic": one.topic, "partition": one.partition, "offset": one.offset}
                    for one in given["checkpoints"]
                ]
            },
        )
    ],
    "list_groups": [Call("GET /v1/groups")],
    "describe_group": [Call("GET /v1/groups/{group}"), Call("GET /v1/groups/{group}/lag")],
    "alter_group": [Call("PUT /v1/groups/{group}/config", _config)],
    "seek_group": [
        Call(
            "POST /v1/groups/{group}/seek",
            lambda given: {
                "to": "earliest",
                "topic": given["topic"],
                "partition": given["partition"],
                "dry_run": True,
            },
        )
    ],
    "pause_group": [Call("POST /v1/groups/{group}/pause", _picked("paused"))],
    "delete_group": [
        Call(
            "DELETE /v1/groups/{group}",
            query=lambda given: {} if given["topic"] is None else {"topic": given["topic"]},
        )
    ],
    "dead_letters.list": [
        Call("GET /v1/dead-letters", query=lambda given: {"dead_letter_topic": given["topic"]})
    ],
    "dead_letters.redrive": [
        Call(
            "POST /v1/dead-letters/redrive",
            lambda given: {"dead_letter_topic": given["topic"], "dry_run": True},
        )
    ],
    "dead_letters.purge": [
        Call(
            "POST /v1/dead-letters/purge",
            lambda given: {"dead_letter_topic": given["topic"], "dry_run": True},
        )
    ],
    "whoami": [Call("GET /v1/whoami")],
    "can": [
        Call(
            "GET /v1/users/{user}/can",
            query=lambda given: {name: given[name] for name in ("action", "kind", "name")},
        )
    ],
    "create_user": [Call("POST /v1/users", _picked("name", "roles"))],
    "alter_user": [Call("PATCH /v1/users/{name}", _picked("roles", "is_locked"))],
    "delete_user": [Call("DELETE /v1/users/{name}")],
    "describe_user": [Call("GET /v1/users/{name}")],
    "list_users": [Call("GET /v1/users")],
    "create_role": [Call("POST /v1/roles", _picked("name"))],
    "delete_role": [Call("DELETE /v1/roles/{name}")],
    "list_roles": [Call("GET /v1/roles")],
    "create_grant": [Call("POST /v1/grants", _picked("subject_kind", "subject", "grant"))],
    "delete_grant": [Call("DELETE /v1/grants/{grant}")],
    "list_grants": [Call("GET /v1/grants")],
    "create_token": [Call("POST /v1/users/{owner}/tokens", _picked("name"))],
    "delete_token": [Call("DELETE /v1/users/{owner}/tokens/{name}")],
    "list_tokens": [Call("GET /v1/tokens")],
    "set_quota": [Call(f"PATCH {QUOTA}", _picked("limits", "cleared"))],
    "delete_quota": [Call(f"DELETE {QUOTA}")],
    "describe_quota": [Call(f"GET {QUOTA}")],
    "list_quotas": [Call("GET /v1/quotas")],
    "create_join_token": [Call("POST /v1/cluster/join-tokens", lambda _: {})],
    "delete_join_token": [Call("DELETE /v1/cluster/join-tokens/{token}")],
    "list_join_tokens": [Call("GET /v1/cluster/join-tokens")],
    "metrics": [Call("GET /metrics")],
}

OPEN: Final = {
    *("GET /", "GET /healthz", "GET /readyz", "GET /v1/openapi.json", "GET /graphql/schema"),
}
"""What anybody may look at."""

ELSEWHERE: Final = {
    "GET /v1/topics/{topic}/stream": "events",
    "GET /v1/socket": "WebSocket",
    "POST /graphql": "GraphQL",
    "GET /graphql": "GraphQL",
}
"""Requests that are doors of their own here."""

OTHERS: Final = {
    "GET /status": "metrics",
    "GET /v1/users/{user}/tokens": "list_tokens",
    f"GET {QUOTA_OF_ALL}": "describe_quota",
    f"PATCH {QUOTA_OF_ALL}": "set_quota",
    f"DELETE {QUOTA_OF_ALL}": "delete_quota",
}
"""Further ways to the same."""


class RestDoor(Door):
    """One node's HTTP port; every caller brings its proof with each request."""

    name = "REST"
    methods = METHODS

    def __init__(self, world: World, at: BenchNode | HttpConnection) -> None:
        self._world = world
        self._connection = at if isinstance(at, HttpConnection) else HttpConnection(at.http)

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        """Return all routes of the door: the paths' variables are called as they are there."""
        found = {}
        for method, calls in METHODS.items():
            for one in calls:
                found[shape(one.asked)] = method
        return {
            **found,
            **{shape(one): "" for one in (*OPEN, *ELSEWHERE)},
            **{shape(one): method for one, method in OTHERS.items()},
        }

    @classmethod
    def meant(cls, method: str, given: dict[str, Any]) -> dict[str, Any]:
        """Producers that count over HTTP have names of their own."""
        if method != "publish_sequenced":
            return given
        request = given["request"]
        return {"request": replace(request, producer=f"{PRODUCER_PREFIX}{request.producer}")}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        """Make every request that stands for the method; they have to say the same."""
        calls = [*METHODS[method]]
        if "page" in given:
            calls = [Call(f"GET {given['page']}")]
        if method == "list_tokens" and "owner" in given:
            calls = [Call("GET /v1/users/{owner}/tokens")]
        if given.get("subject_kind") is QuotaSubject.DEFAULT:
            calls = [one._replace(asked=one.asked.replace(QUOTA, QUOTA_OF_ALL)) for one in calls]
        answers = [await self._ask(one, caller, method, given) for one in calls]
        return agreeing(answers)

    async def _ask(self, call: Call, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        verb, path = call.asked.split(" ")
        values = {"offset": 0, **given, **_of_request(given.get("request"))}
        target = path.format(**{key: quote(str(one), safe="") for key, one in values.items()})
        if call.query is not None:
            target += "?" + urlencode(call.query(given))
        proof = {"Authorization": caller.authorization(self._world.token)}
        more = {} if call.headers is None else call.headers(given)
        body = None if call.body is None else call.body(given)
        answer = await self._connection.ask(verb, target, body, headers={**proof, **more})
        return _read(method, answer)

    async def close(self) -> None:
        await self._connection.close()


def _of_request(request: Any) -> dict[str, Any]:
    names = ("topic", "partition")
    return {name: getattr(request, name) for name in names if hasattr(request, name)}


def shape(asked: str) -> str:
    """Return method and path without the names of the path's variables."""
    parts = ["{}" if one.startswith("{") else one for one in asked.split("/")]
    return "/".join(parts)


def refusal(answer: HttpAnswer) -> Answer:
    """Return a problem in the terms of all doors."""
    told = answer.json
    beside = f"{answer.status} {answer.headers.get('x-leader-hint', '')}"
    return Answer(code=told["code"], text=told["detail"], beside=beside)


def _read(method: str, answer: HttpAnswer) -> Answer:
    if answer.status >= 400:
        return refusal(answer)
    match method:
        case "list_topics" | "list_groups" | "list_users" | "list_roles":
            return listed(answer.json[method.removeprefix("list_")])
        case "list_tokens":
            return listed(answer.json["tokens"], by="owner")
        case "cluster_status":
            return Answer(is_less=answer.json["catalog_index"] == 0)
        case "settle":
            return Answer(code=answer.json["settled"][0].get("code") or "")
    return Answer()
