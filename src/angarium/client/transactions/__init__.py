"""Transactions, writes staged by many processes, and producers that count themselves."""
