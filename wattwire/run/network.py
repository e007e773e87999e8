"""Define the network of the host on which all nodes run (clause C-38)."""

HOST_ADDRESS = "127.0.0.1"
"""IPv4 address on which nodes and service processes listen."""
HOST_INTERFACE = "lo"
"""Network interface with HOST_ADDRESS."""
