"""Settings that are one of a few words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from angarium import Behind, DeliveryMode, GroupConfig, Poison, TopicConfig
from angarium.errors import InvalidArgument


def test_a_word_stands_for_the_setting_of_that_name() -> None:
    # It was sent as it is, and the node answered with the place in the frame that was wrong.
    words: dict[str, Any] = {"poison": "dead-letter", "behind": "jump"}
    assert GroupConfig(**words) == GroupConfig(poison=Poison.DEAD_LETTER, behind=Behind.JUMP)
    mode: Any = "EVENTUAL"
    config = TopicConfig(mode=mode)
    assert config.mode is DeliveryMode.EVENTUAL
    packed = msgspec.msgpack.encode(config)
    assert msgspec.msgpack.decode(packed, type=TopicConfig) == config


@pytest.mark.parametrize("wrong", ["sometimes", 7, None])
def test_any_other_word_is_refused_with_those_that_there_are(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"mode: .* is not one of consistent, eventual, perf"):
        TopicConfig(mode=wrong)
    with pytest.raises(InvalidArgument, match=r"behind: .* is not one of error, jump"):
        GroupConfig(behind=wrong)
