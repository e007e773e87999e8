"""Keep devices that an emulator executes out of comparisons."""
