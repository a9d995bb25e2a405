"""Angarium and the brokers people would pick instead, side by side, in one run.

    python -m benchmarks.peers [--quick] [--peers nats,redis,...] [--only KEY,...] [--format json]

`port` says what a peer is, `shapes` are the loads (the same for all of them), a module per peer
starts its servers and speaks through its best-kept Python client, `rounds` lets Angarium and the
peer take turns, and `figures` is what comes out.
"""
