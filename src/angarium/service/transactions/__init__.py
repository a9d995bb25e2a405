"""Transactions behind the contract: any node coordinates, the home decides, partitions take part.

`procedure` says what has to be asked of whom, and does nothing itself; `participants` puts commands
to the leaders; `transaction_calls` is the contract; `tending` looks after what a crash has left.
"""
