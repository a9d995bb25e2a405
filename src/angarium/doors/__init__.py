"""The doors: how the world outside asks a broker something.

Each door translates between its protocol and the contract of `angarium.api`, and no more. Rules
(limits of topics, authorisation, quotas) are enforced behind the contract, once for all doors. What
doors share lies here: `status` (the one table of errors) and `partitions` (where a record goes when
its producer does not say).
"""
