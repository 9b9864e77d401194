"""Memory, streams and graphs of the gfx950 simulator, for programs that hold their data in numpy arrays.

The simulator is a libamdhip64 (lib/kiln/sim/). This calls the very copy that kiln launches on, and is here what PyTorch or CuPy is
on a GPU: an Array takes its memory to a launch by DLPack, as a ROCm device's. kiln takes the simulator where there is no GPU, and
anywhere with Service(device="sim")."""

import contextlib
import ctypes
import os
import weakref

import numpy as np

from kiln._dlpack import BFLOAT, FLOAT, INT, UINT, DeviceType, ElementType, compact_strides
from kiln._dlpack_producer import capsule
from kiln._library import path as _libkiln
from kiln._streams import handle
from kiln._values import integer

_TO_DEVICE, _TO_HOST = 1, 2
_NOT_AFTER_THE_DEFAULT_STREAM = 1
_CAPTURE_OF_ANY_THREAD = 0
_KINDS = {"i": INT, "u": UINT, "f": FLOAT}
BFLOAT16 = ElementType(BFLOAT, 16)  # what an Array of uint16 may be said to hold


class SimulatorError(RuntimeError):
    """A call that the simulator refused, or a rule that a kernel broke: the text says which, and where."""


def _load():
    path = os.path.join(os.path.dirname(os.path.realpath(_libkiln)), "kiln", "sim", "libamdhip64.so.7")
    try:
        library = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"expected the simulator beside libkiln, at {path}, found: {why}", path=path) from why
    library.hipGetErrorString.restype = ctypes.c_char_p
    library.kiln_sim_last_fault.restype = ctypes.c_char_p
    return library


_hip = _load()


def _require(name, *arguments):
    status = getattr(_hip, name)(*arguments)
    if status != 0:
        device = ctypes.c_int()
        _hip.hipGetDevice(ctypes.byref(device))
        fault = _hip.kiln_sim_last_fault(device).decode(errors="replace")
        raise SimulatorError(f"{name}: {_hip.hipGetErrorString(status).decode()}" + (f": {fault}" if fault else ""))


def set_device(ordinal):
    """Makes a device the calling thread's."""
    _require("hipSetDevice", ctypes.c_int(integer("ordinal", ordinal, ctypes.c_int32)))


def current_device():
    ordinal = ctypes.c_int()
    _require("hipGetDevice", ctypes.byref(ordinal))
    return ordinal.value


def synchronize():
    """Waits for all work of the thread's device. Raises SimulatorError for what a kernel did wrong."""
    _require("hipDeviceSynchronize")


def _released_with(owner, release, *arguments):
    """Not at the interpreter's end, where a thread of Python that goes on may be using it."""
    weakref.finalize(owner, release, *arguments).atexit = False


class _Memory:
    """An allocation on the thread's device, freed with the last Array that lies in it."""

    def __init__(self, size):
        self.device = current_device()
        self.size = size
        pointer = ctypes.c_void_p()
        _require("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.pointer = pointer.value
        _released_with(self, _hip.hipFree, pointer)


class Array:
    """An array on the thread's device, as `array` and `empty` make it. Slices of it are views of the same memory."""

    def __init__(self, memory, layout, origin, element_type):
        self._memory = memory
        # A numpy array of the same shape, strides and place behind `origin`, whose elements nobody ever looks at.
        self._layout = layout
        self._origin = origin
        self.element_type = element_type

    @property
    def shape(self):
        return self._layout.shape

    @property
    def dtype(self):
        return self._layout.dtype

    @property
    def ptr(self):
        """Its address on the device."""
        return self._memory.pointer + self._offset

    @property
    def _offset(self):
        return self._layout.ctypes.data - self._origin

    def __getitem__(self, key):
        """A view; `key` is of integers, slices and `...`, since anything else would have numpy look at elements."""
        key = key if isinstance(key, tuple) else (key,)
        if not all(one is Ellipsis or isinstance(one, (int, slice)) and not isinstance(one, bool) for one in key):
            raise TypeError(f"expected integers, slices and ..., found {key!r}")
        key = key if Ellipsis in key else (*key, Ellipsis)  # so that a single element is a view too
        return Array(self._memory, self._layout[key], self._origin, self.element_type)

    def write(self, source):
        """Copies a numpy array of this shape and type into it; it has to be contiguous."""
        source = np.asarray(source, order="C")
        if source.shape != self.shape or source.dtype != self.dtype or not self._layout.flags.c_contiguous:
            raise ValueError(f"expected {self.dtype} {list(self.shape)} for contiguous memory, found {source.dtype} {list(source.shape)}")
        _copy(self.ptr, source.ctypes.data, source.nbytes, _TO_DEVICE)

    def read(self):
        """A numpy array of what is there once all work of the device is done."""
        synchronize()
        memory = np.empty(self._memory.size, dtype=np.uint8)
        _copy(memory.ctypes.data, self._memory.pointer, memory.nbytes, _TO_HOST)
        return np.ndarray(self.shape, self.dtype, memory, self._offset, self._layout.strides).copy()

    def __dlpack_device__(self):
        return DeviceType.ROCM, self._memory.device

    def __dlpack__(self, *, stream=None, max_version=None):
        strides = [stride // self.dtype.itemsize for stride in self._layout.strides]
        return capsule(self._memory, self.ptr, self.shape, strides, self.element_type, self.__dlpack_device__(), max_version)


def empty(shape, dtype, element_type=None):
    """An Array that nobody wrote: a kernel that reads it is a fault. `element_type` is what it says by DLPack that it holds where
    numpy has no such type (BFLOAT16)."""
    dtype = np.dtype(dtype)
    if element_type is None:
        element_type = _element_type(dtype)
    elif dtype.hasobject or not dtype.isnative or element_type.bits * element_type.lanes != dtype.itemsize * 8:
        raise TypeError(f"dtype: expected a type of the host's byte order with elements of {element_type}, found {dtype}")
    shape = tuple(shape) if np.iterable(shape) else (shape,)
    strides = [stride * dtype.itemsize for stride in compact_strides(shape)]
    layout = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
    memory = _Memory(layout.size * dtype.itemsize)
    return Array(memory, layout, layout.ctypes.data, element_type)


def _element_type(dtype):
    if dtype.kind not in _KINDS or not dtype.isnative:
        raise TypeError(f"dtype: expected integers or floats of the host's byte order, found {dtype}")
    return ElementType(_KINDS[dtype.kind], dtype.itemsize * 8)


def array(source, element_type=None):
    """An Array with the shape, type and content of a numpy array."""
    made = empty(np.shape(source), np.asarray(source).dtype, element_type)
    made.write(source)
    return made


class Stream:
    """A stream of the thread's device that does not wait for the default one; `ptr` is its handle."""

    def __init__(self):
        pointer = ctypes.c_void_p()
        _require("hipStreamCreateWithFlags", ctypes.byref(pointer), _NOT_AFTER_THE_DEFAULT_STREAM)
        self.ptr = pointer.value
        _released_with(self, _hip.hipStreamDestroy, pointer)

    def synchronize(self):
        """Waits for its work. Raises SimulatorError for what a kernel did wrong."""
        _require("hipStreamSynchronize", ctypes.c_void_p(self.ptr))

    @contextlib.contextmanager
    def capture(self):
        """`with stream.capture() as graph:` records in a Graph what is enqueued meanwhile, and runs nothing of it."""
        _require("hipStreamBeginCapture", ctypes.c_void_p(self.ptr), _CAPTURE_OF_ANY_THREAD)
        graph, recorded = Graph(), ctypes.c_void_p()
        try:
            yield graph
        except BaseException:
            if _hip.hipStreamEndCapture(ctypes.c_void_p(self.ptr), ctypes.byref(recorded)) == 0:
                _hip.hipGraphDestroy(recorded)
            raise
        _require("hipStreamEndCapture", ctypes.c_void_p(self.ptr), ctypes.byref(recorded))
        try:
            graph._instantiate(recorded)
        finally:
            _hip.hipGraphDestroy(recorded)


class Graph:
    """What a stream captured."""

    def _instantiate(self, recorded):
        executable = ctypes.c_void_p()
        _require("hipGraphInstantiate", ctypes.byref(executable), recorded, None, None, ctypes.c_size_t(0))
        self._executable = executable
        _released_with(self, _hip.hipGraphExecDestroy, executable)

    def replay(self, stream):
        """Enqueues all of it once."""
        _require("hipGraphLaunch", self._executable, ctypes.c_void_p(handle(stream)))


def _copy(destination, source, size, direction):
    _require("hipMemcpy", ctypes.c_void_p(destination), ctypes.c_void_p(source), ctypes.c_size_t(size), direction)
