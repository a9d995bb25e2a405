"""Doors for clients of the brokers that Angarium succeeds, unchanged, each on its own listener.

A profile speaks its broker's protocol and means its broker's meanings; behind it are the same
topics as behind every other door. All are off until a port is configured: then `angarium.app` loads
this package and asks `profiles.listeners` for them, which is all that Angarium knows of it. The
profiles' schemas share names, so each has a descriptor pool of its own.
"""
