"""What a call ends with when it is not done: an error, or a decline, which is none."""

import ctypes

from kiln import _abi, _values
from kiln._enums import Decline, ErrorCode, Stage
from kiln._library import lib


def _known(enumeration, value):
    """A newer libkiln may have values that this package does not know: those stay numbers."""
    try:
        return enumeration(value)
    except ValueError:
        return value


class Error(Exception):
    """Something is wrong: `code` (ErrorCode) says what kind of thing, `stage` (Stage, None where a launch failed) where in the
    life of a request, the text what was expected, what was found and where."""

    def __init__(self, message, code, stage=None):
        super().__init__(message)
        self.message = message
        self.code = _known(ErrorCode, code)
        self.stage = _known(Stage, stage) if stage else None


class Declined(Exception):
    """"Not applicable": kiln does not serve this, nothing is wrong, and the caller keeps its own path. `reason` is a Decline,
    the text says by name what did not fit."""

    def __init__(self, message, reason):
        super().__init__(message)
        self.message = message
        self.reason = _known(Decline, reason)


class ArrayError(ValueError):
    """An array that can not be what a launch or a function of kiln.formats asks for: of another type, shape or stride, or on
    another device. Found before anything is launched."""


def failure(status, error=None):
    """The exception for a status that is not 0. Takes over the error object."""
    stage = None
    if error:
        message = lib.kiln_error_get_message(error).decode(errors="replace")
        stage = lib.kiln_error_get_stage(error)
        lib.kiln_error_free(error)
    else:
        message = lib.kiln_status_text(status).decode()
    return Declined(message, status) if status > 0 else Error(message, -status, stage)


def call(function, *arguments):
    """Calls a function whose last parameter is a kiln_error**; raises what it ends with."""
    error = ctypes.POINTER(_abi.kiln_error)()
    status = function(*arguments, ctypes.byref(error))
    if status != 0:
        raise failure(status, error)


def decline_text(reason):
    """One sentence for a reason to decline."""
    return lib.kiln_decline_text(_values.integer("reason", reason, ctypes.c_int32)).decode()
