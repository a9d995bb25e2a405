"""The one declaration of what each method asks: nothing of the contract is missing in it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from angarium.api import Broker, OffsetBroker, PassingBroker
from angarium.api.access import AccessBroker, JoinTokenBroker
from angarium.api.backups import BackupBroker
from angarium.api.balance import BalanceBroker
from angarium.api.dead_letters import LettersOfTopic
from angarium.api.quotas import QuotaBroker
from angarium.api.recovery import RecoveryBroker
from angarium.api.transactions import TransactionBroker
from angarium.api.upgrades import UpgradeBroker
from angarium.service.access import PermittedBroker
from angarium.service.access.permitted import _behind
from angarium.service.access.rules import LETTER_RULES, RULES

CONTRACT = (
    Broker,
    TransactionBroker,
    OffsetBroker,
    PassingBroker,
    AccessBroker,
    QuotaBroker,
    JoinTokenBroker,
    BackupBroker,
    BalanceBroker,
    RecoveryBroker,
    UpgradeBroker,
)


def methods_of(*protocols: Any) -> set[str]:
    return {
        name
        for one in protocols
        for name, _ in inspect.getmembers(one, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_method_of_the_contract_has_a_rule_and_nothing_else_has_one() -> None:
    assert set(RULES) == methods_of(*CONTRACT)
    assert set(LETTER_RULES) == methods_of(LettersOfTopic)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_permitted_broker_takes_what_the_service_takes(name: str) -> None:
    mine = inspect.signature(getattr(PermittedBroker, name))
    behind = getattr(_behind(name)[0], name, None)
    if behind is None:
        assert name in {"whoami", "can"}, "these depend on who asks, and nothing is behind them"
        return
    assert list(mine.parameters) == list(inspect.signature(behind).parameters)


def test_what_is_public_on_a_permitted_broker_is_the_contract_or_needs_no_grant() -> None:
    public = {name for name in dir(PermittedBroker) if not name.startswith("_")}
    asking = {"decide", "may", "check", "check_call", "forget", "attend", "recording", "note_call"}
    # Checked by hand: each of them asks what the method of the contract asks that it stands for.
    beside = {
        *("begin_publish", "take_publish", "publish_taken"),
        *("begin_consume", "dead_letters", "partition_count"),
    }
    counting = {"count_by", "counted", "enter"}
    about_producers = {"owner", "producer_name", "level"}
    about_the_node = {"region"}
    assert public == set(RULES) | asking | beside | counting | about_producers | about_the_node
