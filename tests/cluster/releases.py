"""The releases that the tests of mixed clusters are about."""

from __future__ import annotations

from angarium.node.release import Release
from angarium.testing.cluster.other_release import program

THIS = Release(software="1.0", level_max=1)
NEXT = Release(software="2.0", wire_max=2, level_max=2)
"""Understands everything this one does, and more."""
FAR = Release(software="9.0", wire_min=8, wire_max=9, level_min=8, level_max=9)
"""Has nothing in common with this one any more."""

OLD_NODE = program(THIS)
NEW_NODE = program(NEXT)
FAR_NODE = program(FAR)
