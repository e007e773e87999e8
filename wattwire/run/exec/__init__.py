"""Implement `wattwire exec`: measure any command or running system repeatedly."""
