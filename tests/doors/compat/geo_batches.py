"""A client of geo that breaks off again and again, in the middle of batches of other doors."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import base64
import sys

import geo_pb2 as pb
import grpc
from geo_pb2_grpc import BrokerStub

ADDRESSES, USER, PASSWORD = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
PROOF = (("authorization", "basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()),)
RECORDS, PORTION = 600, 120


async def main() -> None:
    channels = [grpc.aio.insecure_channel(address) for address in ADDRESSES]
    stubs = [BrokerStub(channel) for channel in channels]
    seen: list[int] = []
    last = turns = 0
    while len(set(seen)) < RECORDS:
        stub = stubs[turns % 3]
        turns += 1
        call = stub.Subscribe(pb.SubscribeRequest(topics={"batched": last}), metadata=PROOF)
        times = []
        while len(times) < PORTION + turns and len(set(seen)) < RECORDS:
            message = await asyncio.wait_for(call.read(), 60)
            seen.append(int(message.body))
            times.append(message.timestamp)
        call.cancel()
        assert times == sorted(times)
        last = times[-1]
        assert turns < 40, f"{len(set(seen))} of {RECORDS} after {turns} turns"
    assert set(seen) == set(range(RECORDS))
    # What came twice is what was left of a batch that was broken off: less than one per turn.
    assert len(seen) - RECORDS < 50 * turns, len(seen)
    for channel in channels:
        await channel.close()


asyncio.run(main())
