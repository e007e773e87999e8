"""Benchmarks of the robot and its co-processor: ROS 1, rosbridge, AES-128 and its break-even."""
