"""The feature level of the cluster, as one node keeps to it.

The catalog says at which level the cluster works, and lets in only nodes that know it. What is left
to each node: never to open data of a level that its release does not know, to stop when the cluster
has gone beyond it (a release was put back in the meantime), and to hang up on who lags behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import NewerRelease, PreconditionFailed
from angarium.log import level_mark
from angarium.node.release import COMPARED_NUMBERS_LEVEL

if TYPE_CHECKING:
    from angarium.log.disk import Disk
    from angarium.machine.catalog import CatalogMachine
    from angarium.node.release import Release
    from angarium.wire import Hello


class Levels:
    """Which levels this node's release knows, and which one is in force."""

    def __init__(self, release: Release, disk: Disk) -> None:
        self.release = release
        self._disk = disk
        self._marked = level_mark.FIRST_LEVEL

    @property
    def current(self) -> int:
        """The level in force, as far as this node has heard."""
        return self._marked

    @property
    def compares_numbers(self) -> bool:
        """Whether replicas stop where a leader numbers records otherwise than they would."""
        return self._marked >= COMPARED_NUMBERS_LEVEL

    def begin(self, level: int) -> None:
        """Mark a new data directory with the level of the cluster that it belongs to."""
        if level > level_mark.FIRST_LEVEL:
            level_mark.save(self._disk, level)

    def check_data(self) -> None:
        """Look at the mark before anything else is opened.

        Raises `NewerRelease` if the data are of a level that this release does not know yet, and
        `PreconditionFailed` if they are of one that it does not know any more.
        """
        self._marked = level_mark.load(self._disk)
        self._check_known(self._marked)
        release = self.release
        if self._marked < release.level_min:
            raise PreconditionFailed(
                f"the data are of feature level {self._marked}, angarium {release.software} works "
                f"at {release.level_min} or higher; go back to the release before, upgrade every "
                "node to that and raise the level, then come again"
            )

    def note(self, catalog: CatalogMachine) -> None:
        """Hear how the catalog stands; raises `NewerRelease` if its level is not known here.

        A new level is durable when this returns, before anything can be written at it.
        """
        level = catalog.nodes.level
        if catalog.cluster and level > self._marked:
            self._check_known(level)
            level_mark.save(self._disk, level)
            self._marked = level

    def check_peer(self, hello: Hello) -> None:
        """Raise `NewerRelease` for a node whose release does not know the level in force."""
        known = hello.level
        if known < self._marked:
            raise NewerRelease(
                f"the cluster works at feature level {self._marked}, node {hello.node} (angarium "
                f"{hello.software}) knows only {known}; start it with a newer release"
            )

    def _check_known(self, level: int) -> None:
        release = self.release
        if level > release.level_max:
            raise NewerRelease(
                f"the cluster works at feature level {level}, angarium {release.software} knows "
                f"only {release.level_max}; start a newer release on this data directory"
            )
