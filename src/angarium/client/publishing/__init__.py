"""Publishing: records gather into batches, batches travel in order, each is stored once."""
