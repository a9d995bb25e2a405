"""What a node says about itself while it runs."""
