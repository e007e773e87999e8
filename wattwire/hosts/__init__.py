"""Start the hosts of a rig, with an agent on each, and join them by networks."""
