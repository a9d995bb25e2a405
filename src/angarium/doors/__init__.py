"""The doors: how the world outside asks a broker something.

Each door translates between its protocol and the contract of `angarium.api`, and no more. Rules
(limits of topics, authorisation, quotas) are enforced behind the contract, once for all doors. What
doors share lies here: `intake` (how records become batches), `feeds` (how batches become streams of
records), `status` (the one table of errors) and `patience` (waiting out elections). Settings are
declared in `api.settings`, and every door's schema is made from that.
"""
