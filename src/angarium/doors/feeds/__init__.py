"""Feeds: how batches become an outgoing stream of records, at its reader's pace.

`feed` has what comes (a topic's records, or what a member of a group is lent) in portions; `credit`
and `acknowledging` are how a reader answers; `beating` keeps a silent stream alive. `whole` goes on
with partitions that a topic is given, in the order of keys, as `following` decides. `tails` reads
the end of a topic once for everybody who follows it, and `positions` says how far somebody is. A
door writes records down in its own form, and no more.
"""
