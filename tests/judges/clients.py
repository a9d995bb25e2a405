"""Clients of four languages, with their gRPC libraries, against a node's door."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING

from tests.judges.tools import ROOT, STORIES
from tests.judges.verdicts import by_lines, ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.judges.tools import Tools
    from tests.judges.verdicts import Targets, Verdict


def go(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """grpc-go, with generated stubs."""
    yield from by_lines(ran([tools.go_story, targets.broker, new_topic("go")]))


def java(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """grpc-java on Netty."""
    given = [str(STORIES / "Story.java"), targets.broker, new_topic("java"), tools.descriptors]
    yield from by_lines(ran([*tools.java, *given]))


def node(tools: Tools, targets: Targets) -> Iterator[Verdict]:
    """@grpc/grpc-js."""
    given = [str(STORIES / "story.mjs"), targets.broker, new_topic("node"), str(ROOT / "proto")]
    yield from by_lines(ran([tools.node, *given], folder=tools.node_folder))


def python(_: Tools, targets: Targets) -> Iterator[Verdict]:
    """grpcio, without asyncio."""
    story = str(STORIES / "story.py")
    yield from by_lines(ran([sys.executable, story, targets.broker, new_topic("python")]))


def new_topic(language: str) -> str:
    """Return a name that nobody has used: stories count what they find in a topic."""
    return f"judge-{language}-{secrets.token_hex(4)}"
