"""The driver's handle of a stream, from what libraries call a stream."""

from ctypes import c_void_p
from numbers import Integral

from kiln._values import integer


def handle(stream):
    """An integer (hipStream_t, CUstream; None and 0 are the driver's default stream), or an object that has `__cuda_stream__`,
    or its handle as `cuda_stream` (PyTorch, on ROCm too) or `ptr` (CuPy, kiln.sim)."""
    if stream is None:
        return None
    if isinstance(stream, (int, Integral)):  # int first, which is quick; numpy's are of the other
        return integer("stream", stream, c_void_p)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return integer("stream: __cuda_stream__", protocol()[1], c_void_p)
    for name in ("cuda_stream", "ptr"):
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return integer(f"stream: {name}", found, c_void_p)
    raise TypeError(f"expected a stream: an integer, None, or an object with __cuda_stream__, cuda_stream or ptr; found {stream!r}")
