#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the machine of cgroup2_vm.sh: the files of the host below a layer of memory, version 2 of the control
# groups, swap, and then the command.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8
b=/bin/busybox
$b mkdir -p /host /memory /root_layer /proc
for module in /modules/*.ko; do $b insmod "$module"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host || exec $b poweroff -f
$b mount -t tmpfs -o size=70% memory /memory
$b mkdir -p /memory/upper /memory/work
$b mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /root_layer || exec $b poweroff -f
r=/root_layer
$b mount -t proc proc $r/proc
$b mount -t sysfs sys $r/sys
$b mount -t devtmpfs dev $r/dev
$b mkdir -p $r/dev/pts $r/dev/shm
$b mount -t devpts pts $r/dev/pts
$b mount -t tmpfs shm $r/dev/shm
$b mount -t tmpfs run $r/run
$b mount -t tmpfs tmp $r/tmp
$b mount -t cgroup2 groups $r/sys/fs/cgroup
echo "+memory +pids +cpu" >$r/sys/fs/cgroup/cgroup.subtree_control
$b mkswap $r/dev/vda >/dev/null && $b swapon $r/dev/vda
$b ip link set lo up
$b cp /command $r/run/command
$b chroot $r /usr/bin/env bash /run/command
printf "\nthe command ended with code %s\n" $?
$b poweroff -f
