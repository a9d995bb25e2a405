"""A whole cluster in one process, from one seed.

The cores, logs and machines are the real ones; clock, network and disks are simulated, and so are
the clients. A run ends with everything healed and the checkers looking at what clients saw.
"""
