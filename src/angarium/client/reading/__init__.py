"""Reading: fetches by offset, and subscriptions that go on through failures."""
