"""The command line: parse options, call the library, print, exit. No other package imports it."""
