"""Messages and stubs generated from proto/. `make proto` writes them; nobody edits them."""
