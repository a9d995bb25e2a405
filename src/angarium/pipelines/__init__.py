"""Pipelines: the broker's bulk work as PySpark jobs over the data source `angarium`.

Each is a function that a program can call; docs/guides/pipelines.md shows them.
"""
