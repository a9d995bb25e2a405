"""The protocols a cluster can be driven with. All look alike to the load."""
