"""The replay: a range of a topic, or of its archive, goes into a topic again, exactly once.

`plan` fixes what is replayed and cuts it into portions; `ledger` keeps plans where everybody finds
them, and how far each replay has come; `lake` reads archives of topics that may be gone; `replay`
does it.
"""

from angarium.pipelines.jobs import Replay
from angarium.pipelines.replay.replay import Replayed, replay

__all__ = ["Replay", "Replayed", "replay"]
