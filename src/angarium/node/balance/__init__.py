"""Evening out what nodes hold. Pure: the catalog's view and sizes in, a list of moves out.

`plan.planned` is all that others need: the service of the catalog's leader carries its moves out by
`Reassign`, as drains do, and the simulator by its operator. A step replaces one replica of one
partition, or only says who of its replicas is to lead, so a majority of the old voters is always
among the new ones. No step shares a host, spreads a partition over fewer regions or zones, or takes
a replica out of its home. `automatic.Calm` says when a run may begin that nobody asked for.
"""

from angarium.node.balance.automatic import Calm
from angarium.node.balance.layout import LocatedPartition, Move
from angarium.node.balance.plan import COPIES_MAX, located, next_moves, planned

__all__ = ["COPIES_MAX", "Calm", "LocatedPartition", "Move", "located", "next_moves", "planned"]
