"""Boot a real Linux kernel with invented energy in a virtual machine, and run a suite inside."""
