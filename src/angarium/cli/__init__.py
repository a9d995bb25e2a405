"""The `angarium` command.

`grammar` says what can be written, `commands` does it, one module per word in both. The grammar
needs nothing but argparse, so help, completion and mistakes cost no more than Python's start; the
module of a command, and with it the client or the node, is loaded once it is known to be wanted.
"""
