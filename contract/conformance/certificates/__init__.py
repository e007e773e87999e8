"""Check certificates: of the server (C-35), and of both sides (C-43)."""
