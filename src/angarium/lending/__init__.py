"""What a node does for the consumer groups of the partitions it leads.

`GroupHost` is all of it on one node: a `LedPartition` for each partition with groups at work, a
`LedGroup` for each of these groups, a `LedSeat` for each of its members. `angarium.delivery`
decides who gets what; here its decisions are committed, sent and followed up. Like `replica.Host`
it is driven by method calls and has clock, wake-ups and chance handed in (`ports.Surroundings`): by
the event loop in `service.groups.hosting`, by the simulator in `testing.sim.lending`.
"""
