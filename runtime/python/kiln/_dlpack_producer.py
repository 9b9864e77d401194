"""Hands memory out by DLPack: what kiln.sim's arrays need."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int64, c_void_p, cast, py_object

from kiln import _dlpack

# What was handed out, by its address, until whoever took it is done.
_handed_out = {}

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]
_new_capsule.restype = py_object
# For an object that is being freed, which must not become a Python object again.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


@CFUNCTYPE(None, c_void_p)
def _give_back(address):
    _handed_out.pop(address, None)


@CFUNCTYPE(None, c_void_p)
def _capsule_is_freed(capsule):
    """Who consumed it has renamed it, and gives it back itself."""
    for name in (_dlpack.VERSIONED, _dlpack.UNVERSIONED):
        if _is_capsule(capsule, name):
            _handed_out.pop(_pointer_of(capsule, name), None)


def capsule(owner, pointer, shape, strides, dtype, device, max_version, read_only=False):
    """A capsule that keeps `owner` alive: an ElementType, a (DeviceType, ordinal), strides in elements."""
    versioned = max_version is not None and max_version[0] >= _dlpack.SUPPORTED[0]
    managed = _dlpack.ManagedTensorVersioned() if versioned else _dlpack.ManagedTensor()
    if versioned:
        managed.major, managed.minor = _dlpack.SUPPORTED
        managed.flags = _dlpack.READ_ONLY if read_only else 0
    managed.deleter = cast(_give_back, c_void_p)
    extents = (c_int64 * len(shape))(*shape)
    steps = (c_int64 * len(strides))(*strides)
    tensor = managed.tensor
    tensor.data = pointer
    tensor.device = _dlpack.Device(*device)
    tensor.ndim = len(shape)
    tensor.dtype = _dlpack.DataType(*dtype)
    tensor.shape = cast(extents, POINTER(c_int64))
    tensor.strides = cast(steps, POINTER(c_int64))
    address = ctypes.addressof(managed)
    _handed_out[address] = (managed, extents, steps, owner)
    return _new_capsule(address, _dlpack.VERSIONED if versioned else _dlpack.UNVERSIONED, cast(_capsule_is_freed, c_void_p))
