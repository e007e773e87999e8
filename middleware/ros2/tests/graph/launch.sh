#!/bin/sh
# Start listener, relay and talker with the Python of $1, for $2 messages. All end by themselves.
folder=$(dirname "$0")
"$1" "$folder/listener.py" &
"$1" "$folder/relay.py" &
relay=$!
"$1" "$folder/talker.py" "$2" &
wait "$relay" || echo "relay ended with code $?"
wait
