"""Turn the events of processes into the times of messages in each layer."""
