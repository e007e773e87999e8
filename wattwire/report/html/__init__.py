"""What turns sections into one self-contained page."""
