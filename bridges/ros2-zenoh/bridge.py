"""A bridge process between ROS 2 and Zenoh."""

from forwarding import main
from zenoh_end import OuterEnd

if __name__ == "__main__":
    main(OuterEnd)
