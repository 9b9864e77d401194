"""The service: tables, templates, cache, compiler and devices of one program."""

import ctypes
import os
import weakref
from collections import namedtuple
from typing import NamedTuple

from kiln import _abi, _values
from kiln._dlpack import DeviceType
from kiln._enums import PrepareMode
from kiln._errors import Declined, call, failure
from kiln._library import lib
from kiln._plans import PLANS, Answer

NO_DEVICE = -1  # in place of an ordinal in Service.supports: the target of the configuration, whatever devices there are

_LISTS = ("shapes_path", "kernel_path", "cache_path")

Statistics = namedtuple("Statistics", [name for name, _ in _abi.kiln_statistics._fields_ if name != "struct_size"])
Statistics.__doc__ = "Counted since the service was opened; kiln_statistics in kiln.h says what each is."


class DeviceInfo(NamedTuple):
    name: str
    target: str  # "gfx950:sramecc+:xnack-", "sm_90a"
    num_compute_units: int
    simulated: bool
    memory_bytes: int


class Service:
    """What a program opens once. May be used from any number of threads.

    Every argument is one of kiln_config's members (kiln.h): cache_dir, shapes_path, kernel_path, target, device, jit, disable,
    worker, hip_library, log, log_format, workers, compile_in_process, cache_path, cache_limit_bytes, cuda_library. One that is left out
    takes its environment variable, then its default. Paths may be os.PathLike; those of which there can be several
    (shapes_path, kernel_path, cache_path) may be a list.

    Starts no process, binds no driver, compiles nothing. Raises Error for a malformed value or a table with a fault."""

    def __init__(self, **config):
        given = _abi.kiln_config(**{name: _joined(name, value) for name, value in config.items()})
        reference = ctypes.POINTER(_abi.kiln_service)()
        call(lib.kiln_service_open, ctypes.byref(given), ctypes.byref(reference))
        self._service = reference
        self._close = weakref.finalize(self, lib.kiln_service_release, reference)
        self._close.atexit = False  # a thread of Python that goes on to the end may be using it

    def close(self):
        """Lets go of the service, now rather than when nobody refers to it. Plans live on without it."""
        if self._close.alive:
            self._close()
            self._service = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def supports(self, device, problem):
        """Whether kiln serves the problem on the device (NO_DEVICE: on the configured target): an Answer. Never compiles."""
        try:
            call(_function(problem, "supports"), self._service, _ordinal(device), ctypes.byref(problem._c()))
        except Declined as declined:
            return Answer(declined)
        return Answer()

    def prepare(self, device, problem, mode=PrepareMode.BLOCKING):
        """A plan of the problem for the device, with its kernels from the cache or compiled; `mode` says when. Raises Declined
        where kiln does not serve it, Error where something is wrong."""
        options = _abi.kiln_prepare_options(mode=mode)
        reference = ctypes.POINTER(_abi.kiln_plan)()
        call(
            _function(problem, "prepare"), self._service, _ordinal(device), ctypes.byref(problem._c()), ctypes.byref(options),
            ctypes.byref(reference),
        )  # fmt: skip
        try:
            target = self.device_info(device).target
        except BaseException:
            lib.kiln_plan_release(reference)
            raise
        return PLANS[type(problem)](reference, problem, DeviceType.CUDA if target.startswith("sm_") else DeviceType.ROCM)

    def reload(self):
        """Takes the edited tables and templates whole, while other threads launch; plans made before stay as they are. Raises
        Error with every fault where there is one, and goes on with what it had."""
        call(lib.kiln_service_reload, self._service)

    def statistics(self):
        """Counted since the service was opened: a Statistics."""
        counted = _abi.kiln_statistics()
        status = lib.kiln_service_statistics(self._service, ctypes.byref(counted))
        if status != 0:
            raise failure(status)
        return Statistics(*(getattr(counted, name) for name in Statistics._fields))

    def metrics(self, **labels):
        """What it has counted as a page for Prometheus; the labels (rank="3") go to every sample."""
        given = (_abi.kiln_label * len(labels))()
        for label, (name, value) in zip(given, labels.items()):
            label.name, label.value = name, str(value).encode()
        text = ctypes.POINTER(ctypes.c_char)()
        call(lib.kiln_service_metrics, self._service, given, len(labels), ctypes.byref(text))
        try:
            return ctypes.cast(text, ctypes.c_char_p).value.decode()
        finally:
            lib.kiln_text_free(text)

    def device_count(self):
        """How many devices there are. Binds the driver, as any first call that speaks of a device does."""
        count = ctypes.c_int32()
        call(lib.kiln_device_count, self._service, ctypes.byref(count))
        return count.value

    def device_info(self, device):
        """What device this is: a DeviceInfo."""
        info = _abi.kiln_device_info()
        call(lib.kiln_device_get_info, self._service, _ordinal(device), ctypes.byref(info))
        return DeviceInfo(
            info.name.decode(errors="replace"), info.target.decode(), info.num_compute_units, bool(info.simulated), info.memory_bytes
        )


def _function(problem, what):
    if type(problem) not in PLANS:
        raise TypeError(f"expected a problem ({', '.join(kind.__name__ for kind in PLANS)}), found {problem!r:.60}")
    return getattr(lib, f"{problem._struct.__name__}_{what}")


def _ordinal(device):
    return _values.integer("device", device, ctypes.c_int32)


def _joined(name, value):
    """Paths of a list as one string."""
    if name not in _LISTS or not isinstance(value, (list, tuple)):
        return value
    paths = [_values.text(f"{name}[{place}]", path) for place, path in enumerate(value)]
    for place, path in enumerate(paths):
        if b":" in path:
            raise ValueError(f"{name}[{place}]: expected a path without ':', which stands between paths, found {os.fsdecode(path)!r}")
    return b":".join(paths)
