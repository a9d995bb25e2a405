"""A local cluster: nodes as child processes, where they keep things, and what is known of them."""
