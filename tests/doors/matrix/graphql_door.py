"""GraphQL over HTTP: each field of the two roots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.doors.matrix.answers import Answer, Door, agreeing, listed
from tests.doors.matrix.http_client import HttpConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode


def _words(*names: str, **called: str) -> Callable[[Mapping[str, Any]], str]:
    """Return what writes arguments down; `called`: what some are called in the schema."""

    def written(given: Mapping[str, Any]) -> str:
        pairs = [
            f"{called.get(name, name)}: {_word(given[name])}"
            for name in (*names, *called)
            if given.get(name) is not None
        ]
        return f"({', '.join(pairs)})" if pairs else ""

    return written


def _word(value: Any) -> str:
    name = getattr(value, "name", None)
    if isinstance(name, str) and name.isupper():
        return name  # a choice
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return json.dumps(value)


def _grant(given: Mapping[str, Any]) -> str:
    grant = given["grant"]
    inside = f'actions: {_word(grant.actions)}, kind: {grant.kind.name}, name: "{grant.name}"'
    kind, subject = given["subject_kind"].name, _word(given["subject"])
    return f"(subjectKind: {kind}, subject: {subject}, grant: {{{inside}}})"


def _of_topic(more: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda given: f"(topic: {_word(given['request'].topic)}, {more})"


def _seek(given: Mapping[str, Any]) -> str:
    more = "" if given["topic"] is None else f", topic: {_word(given['topic'])}, partition: 0"
    return f"(name: {_word(given['group'])}, to: EARLIEST, dryRun: true{more})"


def _letters(given: Mapping[str, Any]) -> str:
    letters = _word(given["config"].dead_letter_topic)
    return f"(name: {_word(given['group'])}, config: {{deadLetterTopic: {letters}}})"


def _quota(given: Mapping[str, Any]) -> str:
    return f"(subjectKind: {given['subject_kind'].name}, subject: {_word(given['subject'])})"


def _limits(given: Mapping[str, Any]) -> str:
    limits = [f"{{kind: {kind.name}, limit: {one}}}" for kind, one in given["limits"].items()]
    return f"{_quota(given)[:-1]}, limits: [{', '.join(limits)}])"


FIELDS: Final[dict[str, tuple[str, Callable[[Mapping[str, Any]], str], str]]] = {
    "topics": ("list_topics", _words(), "{ name }"),
    "topic": ("describe_topic", _words("name"), "{ name }"),
    "records": ("fetch", _of_topic("partition: 0, offset: 0"), "{ nextOffset }"),
    "groups": ("list_groups", _words(), "{ name }"),
    "group": ("describe_group", _words(group="name"), "{ name }"),
    "status": ("cluster_status", _words(), "{ catalogIndex }"),
    "whoami": ("whoami", _words(), "{ authentication }"),
    "can": ("can", _words("user", "action", "kind", "name"), "{ isAllowed }"),
    "users": ("list_users", _words(), "{ name }"),
    "user": ("describe_user", _words("name"), "{ name }"),
    "roles": ("list_roles", _words(), "{ name }"),
    "grants": ("list_grants", _words(), "{ id }"),
    "tokens": ("list_tokens", _words("owner"), "{ owner }"),
    "publish": ("publish", _of_topic('payload: "x"'), "{ success }"),
    "publishBatch": ("publish", _of_topic('payloads: ["x"]'), "{ success }"),
    "createTopic": ("create_topic", _words("name", "partitions"), "{ name }"),
    "alterTopic": (
        "alter_topic",
        lambda given: f"(name: {_word(given['name'])}, config: {{retentionMs: 86400000}})",
        "{ name }",
    ),
    "deleteTopic": ("delete_topic", _words("name"), ""),
    "alterGroup": ("alter_group", _letters, "{ name }"),
    "seekGroup": ("seek_group", _seek, "{ topic }"),
    "pauseGroup": ("pause_group", _words("paused", group="name"), ""),
    "deleteGroup": ("delete_group", _words("topic", group="name"), ""),
    "createUser": ("create_user", _words("name", "roles"), "{ name }"),
    "alterUser": ("alter_user", _words("name", "roles", is_locked="isLocked"), "{ name }"),
    "deleteUser": ("delete_user", _words("name"), ""),
    "createRole": ("create_role", _words("name"), "{ name }"),
    "deleteRole": ("delete_role", _words("name"), ""),
    "createGrant": ("create_grant", _grant, "{ id }"),
    "deleteGrant": ("delete_grant", _words(grant="id"), ""),
    "createToken": ("create_token", _words("owner", "name"), "{ secret }"),
    "deleteToken": ("delete_token", _words("owner", "name"), ""),
    "quotas": ("list_quotas", _words(), "{ subject }"),
    "quota": ("describe_quota", _quota, "{ subject }"),
    "setQuota": ("set_quota", _limits, "{ subject }"),
    "deleteQuota": ("delete_quota", _quota, ""),
    "joinTokens": ("list_join_tokens", _words(), "{ id }"),
    "createJoinToken": ("create_join_token", _words(), "{ secret }"),
    "deleteJoinToken": ("delete_join_token", _words(token="id"), ""),
    "balance": ("describe_balance", _words(), "{ isRunning }"),
    "rebalance": ("rebalance", _words(bytes_per_s="bytesPerS"), "{ isRunning }"),
    "cancelRebalance": ("cancel_rebalance", _words(), "{ isRunning }"),
    "setAutoBalance": ("set_auto_balance", _words("automatic"), "{ isAutomatic }"),
    "upgrade": ("describe_upgrade", _words(), "{ level }"),
    "recovery": ("describe_recovery", _words("topic", "partition"), "{ objection }"),
    "recoverPartition": (
        "recover_partition",
        _words("topic", "partition", "code"),
        "{ isDone }",
    ),
}
"""By field: the method behind it, its arguments, and what is wanted of its answer."""

OPEN: Final = {"health"}
"""It says only that somebody answers."""

QUERIES: Final = {"topics", "topic", "records", "groups", "group", "status", "whoami", "can"} | {
    *("users", "user", "roles", "grants", "tokens", "quotas", "quota", "joinTokens"),
    *("balance", "upgrade", "recovery"),
}

METHODS: Final[dict[str, list[str]]] = {}
for _field, _declared in FIELDS.items():
    METHODS.setdefault(_declared[0], []).append(_field)


class GraphqlDoor(Door):
    """One node's `/graphql`."""

    name = "GraphQL"
    methods = METHODS

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._connection = HttpConnection(node.http)

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        behind = {field: method for field, (method, _, _) in FIELDS.items()}
        return {**behind, **dict.fromkeys(OPEN, "")}

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        """Ask for every field that stands for the method; they have to say the same."""
        answers = [await self._ask(one, caller, method, given) for one in METHODS[method]]
        return agreeing(answers)

    async def _ask(self, field: str, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        _, arguments, wanted = FIELDS[field]
        root = "query" if field in QUERIES else "mutation"
        query = f"{root} {{ {field}{arguments(given)} {wanted} }}"
        answer = await self._connection.ask(
            "POST",
            "/graphql",
            {"query": query},
            headers={"Authorization": caller.authorization(self._world.token)},
        )
        told = answer.json
        if answer.status == 401:
            return Answer(code=told["code"], text=told["detail"], beside="401")
        if "errors" in told:
            (error,) = told["errors"]
            return Answer(
                code=error["extensions"].get("angariumCode", error["message"]),
                text=error["message"],
                beside=f"{answer.status} {error['extensions'].get('code')}",
            )
        return _read(method, told["data"][field])

    async def close(self) -> None:
        await self._connection.close()


def _read(method: str, found: Any) -> Answer:
    if found is None:
        return Answer(code="NOT_FOUND", text="null")  # as the schema shows what is not there
    match method:
        case "list_topics" | "list_groups" | "list_users" | "list_roles":
            return listed(found)
        case "list_tokens":
            return listed(found, by="owner")
        case "cluster_status":
            return Answer(is_less=found["catalogIndex"] == 0)
    return Answer()
