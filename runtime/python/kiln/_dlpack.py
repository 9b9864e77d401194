"""Reads what an array says of itself by DLPack: where it lies, its type, shape and strides. Copies nothing."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from enum import IntEnum
from typing import NamedTuple, Tuple


class DeviceType(IntEnum):
    """DLPack's numbers of the kinds of memory that matter here."""

    CPU = 1
    CUDA = 2
    CUDA_HOST = 3
    ROCM = 10
    ROCM_HOST = 11
    CUDA_MANAGED = 13


class ElementType(NamedTuple):
    """DLPack's: a kind, how many bits, how many of them in one element."""

    code: int
    bits: int
    lanes: int = 1

    def __str__(self):
        kind = _KINDS.get(self.code)
        if kind is None:
            return f"DLPack type {self.code} of {self.bits} bits"
        name = kind if kind.startswith(("float8", "float4")) else f"{kind}{self.bits}"
        return name if self.lanes == 1 else f"{name} x {self.lanes}"


INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4
E4M3FN, E8M0FNU, E2M1FN = 10, 14, 17
_KINDS = {
    INT: "int", UINT: "uint", FLOAT: "float", BFLOAT: "bfloat", 5: "complex", 6: "bool", 8: "float8_e4m3", E4M3FN: "float8_e4m3fn",
    11: "float8_e4m3fnuz", 12: "float8_e5m2", E8M0FNU: "float8_e8m0fnu", E2M1FN: "float4_e2m1fn",
}  # fmt: skip


class View(NamedTuple):
    """An array as DLPack describes it. `owner` keeps it alive."""

    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in elements
    dtype: ElementType
    device: Tuple[int, int]  # DeviceType, ordinal
    read_only: bool
    owner: object

    @property
    def size(self):
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def is_contiguous(self):
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent > 1 and stride != expected:
                return self.size == 0
            expected *= extent
        return True


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class ManagedTensor(Structure):
    _fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class ManagedTensorVersioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


UNVERSIONED, VERSIONED = b"dltensor", b"dltensor_versioned"
READ_ONLY = 1
SUPPORTED = (1, 0)  # a newer minor version adds element types and flags, not members
_NO_SYNCHRONISING = -1

_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [py_object, c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes = [py_object, c_char_p]
_pointer_of.restype = c_void_p


def is_array(candidate):
    return hasattr(candidate, "__dlpack__") and hasattr(candidate, "__dlpack_device__")


def device_of(array):
    kind, ordinal = array.__dlpack_device__()
    return int(kind), int(ordinal)


def view(array):
    """What the array is now. The producer is asked to synchronise nothing: a launch is ordered by its stream alone, as any
    kernel's. The capsule stays ours, unconsumed, so that dropping it gives the array back."""
    try:
        capsule = array.__dlpack__(stream=_NO_SYNCHRONISING, max_version=SUPPORTED)
    except TypeError:  # from before DLPack had versions
        capsule = array.__dlpack__(stream=_NO_SYNCHRONISING)
    read_only = False
    if _is_capsule(capsule, VERSIONED):
        managed = ManagedTensorVersioned.from_address(_pointer_of(capsule, VERSIONED))
        if managed.major != SUPPORTED[0]:
            raise BufferError(f"expected DLPack {SUPPORTED[0]}.x, found {managed.major}.{managed.minor}")
        read_only = bool(managed.flags & READ_ONLY)
    elif _is_capsule(capsule, UNVERSIONED):
        managed = ManagedTensor.from_address(_pointer_of(capsule, UNVERSIONED))
    else:
        raise BufferError(f"expected a capsule from __dlpack__, found {capsule!r}")
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else compact_strides(shape)
    return View(
        (tensor.data or 0) + tensor.byte_offset, shape, strides,
        ElementType(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        (tensor.device.type, tensor.device.id), read_only, capsule,
    )  # fmt: skip


def compact_strides(shape):
    strides, next_stride = [], 1
    for extent in reversed(shape):
        strides.append(next_stride)
        next_stride *= extent
    return tuple(reversed(strides))
