"""The replay: a range of a topic, or of its archive, goes into a topic again, exactly once.

`plan` fixes what is replayed and cuts it into portions; `ledger` keeps plans where everybody finds
them, and how far each replay has come; `lake` reads archives of topics that may be gone; `pace`
says when the next portion goes; `replay` does it.
"""

from angarium.pipelines.jobs import Replay
from angarium.pipelines.replay.pace import Replayed
from angarium.pipelines.replay.replay import replay

__all__ = ["Replay", "Replayed", "replay"]
