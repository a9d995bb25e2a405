"""The key of decoys: drawn once, kept for ever, on every replica and in every snapshot."""

from __future__ import annotations

import pytest

from angarium.ids import Incarnation, Index, Micros, Term
from angarium.machine.catalog import (
    DECOY_KEY_LEVEL,
    CatalogCommand,
    CatalogMachine,
    Form,
    LevelRaise,
    NodeRegister,
    encode,
)
from angarium.machine.outcomes import Refused

KEY, OTHER = b"k" * 32, b"o" * 32
NODE = NodeRegister(incarnation=Incarnation(1), addresses=(), level_max=DECOY_KEY_LEVEL)


def catalog(*commands: CatalogCommand) -> CatalogMachine:
    machine = CatalogMachine()
    for index, command in enumerate(commands, 1):
        machine.apply(Index(index), Term(1), encode(command))
    return machine


def test_a_cluster_gets_its_key_when_it_is_formed() -> None:
    formed = Form(cluster="c", level=DECOY_KEY_LEVEL, decoy_key=KEY)
    machine = catalog(formed, NODE, LevelRaise(level=DECOY_KEY_LEVEL, decoy_key=OTHER))
    assert machine.decoy_key == KEY


def test_an_older_cluster_gets_it_when_its_level_is_raised() -> None:
    formed = Form(cluster="c", level=DECOY_KEY_LEVEL - 1, decoy_key=OTHER)
    assert catalog(formed, NODE).decoy_key == b""
    below = LevelRaise(level=DECOY_KEY_LEVEL - 1, decoy_key=OTHER)
    raised = LevelRaise(level=DECOY_KEY_LEVEL, decoy_key=KEY)
    assert catalog(formed, NODE, below).decoy_key == b""
    assert catalog(formed, NODE, below, raised).decoy_key == KEY
    # A cluster that came to this level without a key gets one the next time.
    without = LevelRaise(level=DECOY_KEY_LEVEL)
    assert catalog(formed, NODE, without).decoy_key == b""
    assert catalog(formed, NODE, without, raised).decoy_key == KEY


def test_a_raise_that_is_refused_brings_none() -> None:
    formed = Form(cluster="c", level=DECOY_KEY_LEVEL)
    machine = catalog(formed, NODE)
    outcomes = [
        machine.apply(Index(index), Term(1), encode(LevelRaise(level=level, decoy_key=KEY)))
        for index, level in ((3, DECOY_KEY_LEVEL + 1), (4, DECOY_KEY_LEVEL - 1))
    ]
    assert all(isinstance(one.outcomes[0], Refused) for one in outcomes)
    assert machine.decoy_key == b""


@pytest.mark.parametrize("key", [KEY, b""])
def test_a_snapshot_has_it(key: bytes) -> None:
    machine = catalog(Form(cluster="c", level=DECOY_KEY_LEVEL, decoy_key=key), NODE)
    copy = CatalogMachine()
    copy.restore(machine.snapshot())
    assert copy.decoy_key == key
    assert copy.snapshot() == machine.snapshot()


def test_no_log_shows_it() -> None:
    for command in (Form(cluster="c", decoy_key=KEY), LevelRaise(level=8, decoy_key=KEY)):
        assert "kkk" not in repr(command)
        assert command.time == Micros(0)
