"""What each command does, one module per word. Loaded one at a time, when it is wanted."""
