"""Value types. This package opens no file, starts no process and uses no network."""
