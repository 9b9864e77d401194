"""Values of Python as C takes them. ctypes would wrap an integer that does not fit, cut a string at a NUL and take an integer for
an address, all in silence."""

import ctypes
import operator
import os
from ctypes import c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p


def _range(kind):
    bits, signed = 8 * ctypes.sizeof(kind), kind(-1).value == -1
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


INTEGERS = {kind: _range(kind) for kind in (c_int32, c_uint32, c_int64, c_uint64)}  # size_t is one of them
INTEGERS[c_void_p] = (0, INTEGERS[ctypes.c_size_t][1])


def integer(name, value, kind):
    """What `value` is as an integer, which has to be one that the type of ctypes holds. Of numpy's too."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, found {value!r:.60} ({type(value).__name__})") from None
    low, high = INTEGERS[kind]
    if not low <= found <= high:
        raise ValueError(f"{name}: expected an integer in {low}..{high}, found {found}")
    return found


def text(name, value):
    """The bytes of a str, of bytes or of an os.PathLike."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: expected a string, found {value!r:.60} ({type(value).__name__})")
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{name}: expected a string without NUL, found {value!r:.60}")
    return encoded


def member(name, value, kind):
    """What a member of a struct is set to; None is NULL for strings and addresses."""
    if value is None and kind in (c_char_p, c_void_p):
        return None
    if kind in INTEGERS:
        return integer(name, value, kind)
    return text(name, value) if kind is c_char_p else value
