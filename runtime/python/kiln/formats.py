"""Number formats and memory layouts on numpy arrays: what formats.h has, so that weights can be prepared for the operators.

fp8 and e8m0 are uint8, bf16 is uint16, fp4 is uint8 with two elements in a byte (the even one in the low half). A matrix is
[rows, columns], or [experts, rows, columns]. Raises ArrayError for an array of another type or shape, Error for a size that a
layout does not allow."""

import ctypes

import numpy as np

from kiln._enums import AmaxFloor, Dtype, RowOrder
from kiln._errors import ArrayError, call
from kiln._library import lib
from kiln._values import integer

_SCALE_GROUP, _BLOCK = 32, 128


def to_bf16(values):
    """float32 to bf16, rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    quiet = ((bits >> np.uint32(16)) | np.uint32(0x40)).astype(np.uint16)
    return np.where((bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000), quiet, rounded)


def from_bf16(bits):
    """bf16 to float32, exactly."""
    _require("bits", bits, np.uint16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def shuffle_weights(row_major, order=RowOrder.AS_THEY_ARE):
    """Bytes of weights, row by row, to the preshuffled (16, 16) layout: kiln_shuffle_weights. The result has the same shape,
    which no longer means anything but its size."""
    return _rearranged(lib.kiln_shuffle_weights, row_major, order)


def unshuffle_weights(shuffled, order=RowOrder.AS_THEY_ARE):
    """The way back; the shape is the one that was shuffled."""
    return _rearranged(lib.kiln_unshuffle_weights, shuffled, order)


def shuffle_scales(row_major, order=RowOrder.AS_THEY_ARE):
    """e8m0 scales, one for each row and 32 k, to the preshuffled layout, padding included: kiln_shuffle_scales."""
    source, extents = _matrices("row_major", row_major)
    shuffled = np.empty(lib.kiln_shuffled_scales_bytes(*extents), dtype=np.uint8)
    call(lib.kiln_shuffle_scales, _address(source), *extents, _enumerator("order", order), _address(shuffled))
    return shuffled


def unshuffle_scales(shuffled, shape, order=RowOrder.AS_THEY_ARE):
    """The way back to [rows, columns] or [experts, rows, columns]."""
    _require("shuffled", shuffled, np.uint8)
    row_major = np.empty(shape, dtype=np.uint8)
    _, extents = _matrices("shape", row_major)
    expected = lib.kiln_shuffled_scales_bytes(*extents)
    if shuffled.size != expected:
        raise ArrayError(f"shuffled: expected {expected} bytes for {list(row_major.shape)}, found {shuffled.size}")
    contiguous = np.ascontiguousarray(shuffled)
    call(lib.kiln_unshuffle_scales, _address(contiguous), *extents, _enumerator("order", order), _address(row_major))
    return row_major


def quantise_1x128(x):
    """bf16 [rows, K] to e4m3fn [rows, K] and float32 scales [rows, K/128]: kiln_quantise_1x128."""
    x, rows, k, ldx = _rows(x)
    q = np.empty((rows, k), dtype=np.uint8)
    scales = np.empty((rows, k // _BLOCK), dtype=np.float32)
    scales_pointer = scales.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    call(lib.kiln_quantise_1x128, _address(x), rows, k, ldx, _address(q), scales_pointer)
    return q, scales


def quantise_1x32(x, dtype, floor=AmaxFloor.FLOOR_1E_10):
    """bf16 [rows, K] to an MX format, Dtype.E2M1 (two to a byte: [rows, K/2]) or Dtype.E4M3FN, and e8m0 scales [rows, K/32], not
    shuffled: kiln_quantise_1x32."""
    dtype, floor = _enumerator("dtype", dtype), _enumerator("floor", floor)
    x, rows, k, ldx = _rows(x)
    q = np.empty((rows, k // 2 if dtype == Dtype.E2M1 else k), dtype=np.uint8)
    scales = np.empty((rows, k // _SCALE_GROUP), dtype=np.uint8)
    call(lib.kiln_quantise_1x32, _address(x), rows, k, ldx, dtype, floor, _address(q), _address(scales))
    return q, scales


def _rearranged(function, source, order):
    source, extents = _matrices("weights", source)
    result = np.empty(source.shape, dtype=np.uint8)
    call(function, _address(source), *extents, _enumerator("order", order), _address(result))
    return result


def _enumerator(name, value):
    return integer(name, value, ctypes.c_int32)


def _matrices(name, array):
    """Contiguous bytes, and their (experts, rows, columns)."""
    _require(name, array, np.uint8)
    if array.ndim not in (2, 3):
        raise ArrayError(f"{name}: expected [rows, columns] or [experts, rows, columns], found {list(array.shape)}")
    return np.ascontiguousarray(array), array.shape if array.ndim == 3 else (1, *array.shape)


def _rows(x):
    """bf16 rows, which may lie apart: the array, rows, columns, elements between rows."""
    _require("x", x, np.uint16)
    if x.ndim != 2:
        raise ArrayError(f"x: expected [rows, K], found {list(x.shape)}")
    rows, k = x.shape
    row_stride, inner_stride = x.strides
    if inner_stride != x.itemsize or row_stride < k * x.itemsize or row_stride % x.itemsize:
        x, row_stride = np.ascontiguousarray(x), k * x.itemsize
    return x, rows, k, row_stride // x.itemsize if rows > 1 else k


def _require(name, array, dtype):
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ArrayError(f"{name}: expected a numpy array of {np.dtype(dtype)}, found {found}")


def _address(array):
    return array.ctypes.data
