"""Finds libkiln, opens it, and refuses one that this package was not written for."""

import ctypes
import os

from kiln import _abi

_NAME = "libkiln.so.{}.{}".format(*_abi.VERSION)
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _find():
    """KILN_LIBRARY; else the one in whose kiln/python/ this package lies, installed or built; else what the loader finds."""
    named = os.environ.get("KILN_LIBRARY")
    if named:
        return named
    beside = os.path.normpath(os.path.join(_PACKAGE, "..", "..", "..", _NAME))
    return beside if os.path.exists(beside) else _NAME


def _open():
    path = _find()
    wanted = "{}.{}".format(*_abi.VERSION)
    try:
        library = ctypes.CDLL(path)
        library.kiln_version.restype = ctypes.c_char_p
        found = library.kiln_version().decode()
        # Before 1.0 every minor version may change the interface.
        if found.split(".")[:2] != wanted.split("."):
            raise OSError(f"version {found}")
        _abi.declare(library)
    except (OSError, AttributeError) as why:
        raise ImportError(f"expected libkiln {wanted} at {path}, found: {why}; KILN_LIBRARY names another", path=path) from why
    return _file_of(library.kiln_version), library


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def _file_of(function):
    """The library in which it lies, wherever the loader found that."""
    info = _SymbolInfo()
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    return os.path.abspath(os.fsdecode(info.file))


path, lib = _open()
