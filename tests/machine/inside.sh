#!/bin/sh
# PID 1 of the test machine on the host's root. It prepares what an init system would, runs the
# suite, and powers the machine off whatever the suite did.
out=/mnt/out
. "$out/environment"
export PATH HOME LANG WATTWIRE_CACHE PYTHONPATH LIMIT_S
/sbin/ip link set lo up
hostname test-machine
cd "$CLONE" || echo "no clone at $CLONE"
# Middleware beyond what a step needs would only cost time: `doctor` looks at each cell. A bridge
# needs its middleware.
mkdir /tmp/members /tmp/none
for name in $MEMBERS; do cp -a "middleware/$name" /tmp/members/; done
mount --bind /tmp/members middleware
mount --bind /tmp/none bridges
echo "machine: the suite begins after $(cut -d ' ' -f 1 /proc/uptime) s"
"$PYTHON" -m tests.machine.suite $ARGUMENTS > "$out/suite.log" 2>&1
echo $? > "$out/status"
echo "machine: the suite ended after $(cut -d ' ' -f 1 /proc/uptime) s"
sync
echo o > /proc/sysrq-trigger
sleep 60
