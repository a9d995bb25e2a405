"""Angarium: a replicated message broker whose topics are Spark tables."""

__version__ = "0.1.0.dev0"
