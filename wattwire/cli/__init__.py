"""Parse options, call the library, print results and exit. No other package imports `cli`."""
