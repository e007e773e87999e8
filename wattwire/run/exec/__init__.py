"""`wattwire exec`: any command or running system, measured in repeats."""
