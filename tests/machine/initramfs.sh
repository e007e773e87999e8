#!/bin/sh
# The first program of the test machine, run by busybox from the initramfs. It makes the host's
# root, read-only over 9p, the root of the machine, with a layer in memory for what is written.
# If anything here fails, PID 1 ends, the kernel panics, and qemu ends (-no-reboot, panic=-1).
set -e
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done < /modules/order
mount -t tmpfs -o size=80% layer /layer
mkdir /layer/written /layer/work
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=1048576 host /host
mount -t overlay -o lowerdir=/host,upperdir=/layer/written,workdir=/layer/work root /new
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount -t cgroup2 cgroups /new/sys/fs/cgroup
mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/shm /new/dev/pts /new/mnt/out
mount -t tmpfs shm /new/dev/shm
mount -t devpts pts /new/dev/pts
mount -t tmpfs run /new/run
mount -t tmpfs temporary /new/tmp
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=1048576 out /new/mnt/out
exec switch_root /new /bin/sh -c "$(cat /script)"
