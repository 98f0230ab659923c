#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What cgroup2_vm.sh runs in its machine: the C++ tests of limits and of the watch, then watched notebooks in containers of
# version 2 with and without swap. Arguments are pytest's, in the place of the usual ones.
set -uo pipefail
status=0
echo "groups: $(grep -c . /sys/fs/cgroup/cgroup.controllers) $(cat /sys/fs/cgroup/cgroup.controllers)"
free -m
head -1 /proc/pressure/memory
if [[ $# -eq 0 ]]; then
  build/release/leadline_tests --gtest_brief=1 --gtest_filter='Gate.*:FollowedBlocks.*:CgroupScope.*:CrashHandler.*:Flight*:Growth.*:Laps.*:Postmortem.*:Guard.*:ThreadPause.*:Rescue.*:Spawn.*:WatchRule.*:MemoryProbe.*:Watchdog.*:MemoryLimits.*:CpuQuota.*' || status=1
  set -- tests/notebook/test_survival.py tests/notebook/test_watched_kernels.py -k 'not healthy'
fi
# An emulated machine is ten times slower, and its first look at each file takes longer still.
export LEADLINE_PATIENCE=${LEADLINE_PATIENCE:-10}
.venv/bin/python -c 'import IPython, ipykernel, leadline, numpy, pandas, pytest'
.venv/bin/python -m pytest -p no:cacheprovider -v "$@" || status=1
exit $status
