"""Faults on a cluster of real processes, many times over, and a table of what came of it.

`make chaos` runs it. Each line is a cluster of its own under recorded load; the checkers of the
simulator judge what clients were told against what every replica holds in the end.

Each module has faults of one kind, a function per line of the table; `table` names them all.
"""
