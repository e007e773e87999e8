"""A bridge process between ROS 2 and MQTT."""

from forwarding import main
from mqtt_end import OuterEnd

if __name__ == "__main__":
    main(OuterEnd)
