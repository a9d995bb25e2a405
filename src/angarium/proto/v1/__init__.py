"""`angarium.v1`: the messages and the stub of the public gRPC door."""
