"""Print what a study will do on this machine before it runs."""
