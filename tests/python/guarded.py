# SPDX-License-Identifier: Apache-2.0
"""What the tests of leadline.guard share: how a call ended, and what is left of it."""

import os
from pathlib import Path

import pytest

from leadline import GuardError, guard

MB = 1_000_000


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def shared_memory():
    mapped = Path("/proc/self/maps").read_text().count("leadline-guard")
    return sorted(os.listdir("/dev/shm")), mapped


def descendants(pid=None):
    """Processes below this one, zombies too."""
    found = []
    for task in os.listdir(f"/proc/{pid or 'self'}/task"):
        for child in Path(f"/proc/{pid or 'self'}/task/{task}/children").read_text().split():
            try:
                found += [int(child), *descendants(child)]
            except OSError:
                pass
    return found


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def death(fn, *args, **options):
    with pytest.raises(GuardError) as caught:
        guard(fn, *args, **options)
    return caught.value


def double(array):
    return array * 2
