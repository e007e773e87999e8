"""A bridge process between ROS 2 and MQTT."""

from forwarding import main
from mqtt_end import OuterEnd

if __name__ == "__main__":
    main(OuterEnd, {"outer_tcp_nodelay": bool, "outer_broker_tcp_nodelay": bool})
