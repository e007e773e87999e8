"""`wattwire exec`: repeated measurement of any command or running system."""
