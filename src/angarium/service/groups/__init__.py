"""Consumer groups on a node.

Two sides, which may be on one node or on two:

- the *leader* of a partition (`angarium.lending`, on the event loop by `hosting`): decides who gets
  what, commits what has to survive, and reads the batches it sends;
- the *agent* of a consumer, on whichever node it talks to (`consumption`, `posts`): keeps it
  attached to the leaders, through elections and lost connections, and passes on what they say.

`group_calls` is the face of both: the part of the contract that is about groups.
"""
