"""Parse options, call the library, print, and exit. No other package imports this one."""
