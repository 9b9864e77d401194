"""The driver's handle of a stream, from what libraries call a stream."""


def handle(stream):
    """An integer (hipStream_t, CUstream; None and 0 are the driver's default stream), or an object that has `__cuda_stream__`,
    or its handle as `cuda_stream` (PyTorch, on ROCm too) or `ptr` (CuPy, kiln.sim)."""
    if stream is None:
        return None
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return protocol()[1]
    for name in ("cuda_stream", "ptr"):
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return found
    raise TypeError(f"expected a stream: an integer, None, or an object with __cuda_stream__, cuda_stream or ptr; found {stream!r}")
