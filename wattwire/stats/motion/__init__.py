"""The motion of a robot: paths from commands, and laps in recorded poses."""
