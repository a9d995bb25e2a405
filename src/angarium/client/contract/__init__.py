"""The contract itself over the wire: batches in, batches out, for doors apart from a node.

Programs use `Client`, which packs records, resumes subscriptions and repeats what may be repeated.
A gateway's clients have their own ways to do so; it only has to pass on what they say, and to find
a node that can do it. `RemoteBroker` implements `api.Broker` and `api.GroupBroker`.
"""

from angarium.client.contract.broker import RemoteBroker

__all__ = ["RemoteBroker"]
