"""Check that the link emulator does what the profiles of links state."""
