# SPDX-License-Identifier: Apache-2.0
"""tf.config and tf.device: which devices there are, and what happens when one is asked for that is not.

A device that is missing, or that Leadline has no kernels for, is replaced by the CPU with one warning that lists what
exists (soft placement, TensorFlow's default in eager mode); after set_soft_device_placement(False) it is an error.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import namedtuple

from leadline import _leadline
from leadline.tf import graph as graphs
from leadline.tf.errors import InvalidArgumentError

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
LogicalDeviceConfiguration = namedtuple(
    "LogicalDeviceConfiguration",
    ["memory_limit", "experimental_priority", "experimental_device_ordinal"],
    defaults=(None, None, None),
)

_soft = True
_devices: list[PhysicalDevice] | None = None
_visible: list[PhysicalDevice] | None = None
_told: set[str] = set()
_threads = {"intra": 0, "inter": 0}


def _physical() -> list[PhysicalDevice]:
    global _devices
    if _devices is None:
        found = _leadline.devices(5.0).devices
        # As TensorFlow does, only those that can be used: leadline.devices() lists the others with the reason.
        _devices = [PhysicalDevice(f"/physical_device:{d.name.lstrip('/')}", d.kind) for d in found if d.runs]
    return _devices


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that Leadline has kernels for; leadline.devices() lists all that exist."""
    return [device for device in _physical() if device_type in (None, device.device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    devices = _physical() if _visible is None else _visible
    return [device for device in devices if device_type in (None, device.device_type)]


def set_visible_devices(devices, device_type: str | None = None) -> None:
    """Hides all other devices of the type."""
    global _visible
    chosen = (
        list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    )
    known = _physical()
    for device in chosen:
        if device not in known:
            raise ValueError(f"Unrecognized device: {device!r}; there are {', '.join(d.name for d in known)}")
        if device_type not in (None, device.device_type):
            raise ValueError(f"Device {device!r} is not of the type {device_type}")
    kept = [] if device_type is None else [d for d in get_visible_devices() if d.device_type != device_type]
    _visible = [d for d in known if d in kept or d in chosen]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The visible devices that Leadline can run on."""
    return [
        LogicalDevice(device.name.replace("/physical_device:", "/device:"), device.device_type)
        for device in get_visible_devices(device_type)
    ]


def set_soft_device_placement(enabled: bool) -> None:
    """Whether a device that is missing is replaced by the CPU (with one warning) or an error."""
    global _soft
    _soft = bool(enabled)


def get_soft_device_placement() -> bool:
    return _soft


def resolve_device(name) -> str:
    """The device that runs what asks for `name`."""
    if name is None:
        return ""
    if callable(name):
        return ""  # a function of the op: every op runs on the CPU
    if not isinstance(name, str):
        raise ValueError(f"Expected a device name, got {type(name).__name__}")
    short = _short(name)
    if not short:
        return ""
    policy = _leadline.MissingDevice.FALLBACK if _soft else _leadline.MissingDevice.ERROR
    try:
        chosen, message = (
            ("/CPU:0", "") if short.upper().lstrip("/") in ("CPU", "CPU:0") else _leadline.choose_device(short, policy)
        )
    except _leadline.Error as error:
        raise InvalidArgumentError(message=f"Could not satisfy device specification '{name}'. {error}") from None
    if message and message not in _told:
        _told.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    return f"/device:{chosen.lstrip('/')}"


def _short(name: str) -> str:
    """ "/job:localhost/replica:0/task:0/device:GPU:0" is "/GPU:0"."""
    parts = [part for part in name.split("/") if part and part.split(":")[0].lower() not in ("job", "replica", "task")]
    if not parts:
        return ""
    last = parts[-1]
    return "/" + (last.split(":", 1)[1] if last.lower().startswith("device:") else last)


@contextlib.contextmanager
def device(name):
    """A context whose ops run on a device. See leadline.devices() for those that exist."""
    if graphs.building():
        with graphs.current().device(name):
            yield
    else:
        resolve_device(name)
        yield


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None) -> bool:
    return bool(get_visible_devices("GPU"))


def gpu_device_name() -> str:
    """The first GPU that Leadline has kernels for; empty: there is none."""
    return next((device.name for device in list_logical_devices("GPU")), "")


def is_built_with_cuda() -> bool:
    return False


def set_log_device_placement(enabled: bool) -> None:
    """Prints to stderr where each op runs, when it runs eagerly."""
    from leadline.tf import op

    op.log_placement = bool(enabled)


class _Experimental:
    """tf.config.experimental: what programs set before they begin."""

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    set_visible_devices = staticmethod(set_visible_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    VirtualDeviceConfiguration = LogicalDeviceConfiguration

    @staticmethod
    def set_memory_growth(device, enable) -> None:
        """Leadline takes memory as it is needed; there is nothing to set."""

    @staticmethod
    def get_memory_growth(device) -> bool:
        return True

    @staticmethod
    def set_virtual_device_configuration(device, logical_devices) -> None:
        set_logical_device_configuration(device, logical_devices)

    @staticmethod
    def enable_op_determinism() -> None:
        """Results never depend on the number of threads."""

    @staticmethod
    def get_memory_info(device) -> dict[str, int]:
        from leadline.tf import memory

        budget = memory.get_budget()
        return {"current": budget.used, "peak": budget.peak}

    @staticmethod
    def reset_memory_stats(device) -> None:
        from leadline.tf import memory

        memory.get_budget().reset_peak()


experimental = _Experimental()


def set_logical_device_configuration(device, logical_devices) -> None:
    """Memory limits in MB of a CPU become the budget; those of other devices mean nothing here."""
    from leadline.tf import memory

    limits = [item.memory_limit for item in logical_devices if item.memory_limit]
    if device.device_type == "CPU" and limits:
        memory.set_budget(int(sum(limits)) << 20)


class _Threading:
    """tf.config.threading. Ops run one after the other, each on this many threads of the engine; 0: on all CPUs."""

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        from leadline.tf import engine

        if num_threads < 0:
            raise ValueError(f"the number of threads is {num_threads}")
        engine.threads = _threads["intra"] = int(num_threads)
        engine.clear()

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        return _threads["intra"]

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        _threads["inter"] = int(num_threads)

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        return _threads["inter"]


threading = _Threading()


def run_functions_eagerly(run_eagerly: bool) -> None:
    from leadline.tf import functions

    functions.run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    from leadline.tf import functions

    return functions.run_eagerly
