"""Taking part in consumer groups: what a user holds in hand, and the thread that keeps it.

A consumer has two halves. One is the user's: records, batches, and what is said about them. The
other lives on an event loop in a thread of its own (`attachment`): it talks to a node, renews what
is on loan, and begins anew at another node when one fails. Between them there are only a queue of
deliveries (`handover`) and what was said about them (`lent_partition`), so user code that computes
for a minute delays only itself.
"""
