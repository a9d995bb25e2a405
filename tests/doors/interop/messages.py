"""The messages of test.proto, made when they are asked for: nothing generated is kept."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

FOLDER = Path(__file__).parent
PACKAGE = "grpc.testing"


@cache
def messages() -> dict[str, Any]:
    """Return the classes of all messages, by name."""
    pool = descriptor_pool.DescriptorPool()  # its own: other tests may have other test.proto
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set.binpb"
        words = ("protoc", f"-I{FOLDER}", f"--descriptor_set_out={out}", "test.proto")
        assert protoc.main(words) == 0, "protoc refused test.proto; its words are above"
        for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
            pool.Add(file)
    found = message_factory.GetMessageClassesForFiles(["test.proto"], pool)
    return {name.removeprefix(f"{PACKAGE}."): one for name, one in found.items()}
