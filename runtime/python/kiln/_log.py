"""kiln's log, which is the process's: what is said of it stands in kiln.h."""

import atexit
import logging

from kiln import _abi, _values
from kiln._enums import ErrorCode, LogLevel
from kiln._errors import Error, call, failure
from kiln._library import lib

_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}
_taken = []  # all that was ever taken with: of two threads that set it at once, nobody here knows whose kiln calls


def set_log(level=None, format=None):
    """From now on: lines of `level` ("debug", "info", "warning", "error") and above, or none ("off"), in `format` ("text" or
    "json"). None leaves either as it is."""
    words = {"level": level, "format": format}
    call(lib.kiln_log_set, *(word if word is None else _values.text(f"set_log: {name}", word) for name, word in words.items()))


def take_log(take):
    """Lines go to take(level, line), a LogLevel and a str, in place of stderr; with None to stderr again. It is called by
    whatever thread speaks, several at once, and can not itself call this: Error."""
    if take is not None and not callable(take):
        raise TypeError(f"take_log: expected what can be called with a level and a line, or None, found {take!r:.60}")
    given = _abi.kiln_log_callback()
    if take is not None:
        given = _abi.kiln_log_callback(lambda _, level, line: take(LogLevel(level), line.decode(errors="replace")))
        _taken.append(given)
    status = lib.kiln_log_set_callback(given, None)
    if status == -ErrorCode.INVALID_ARGUMENT:  # its one reason, in kiln.h
        raise Error("take_log: expected a call from outside of what takes the log, found one from within it", -status)
    if status != 0:
        raise failure(status)
    atexit.unregister(take_log)
    if take is not None:
        atexit.register(take_log, None)  # threads of kiln outlive the interpreter


def log_to(logger):
    """Lines go to a logging.Logger, in place of stderr, at Python's level of the same name."""
    if not callable(getattr(logger, "log", None)):
        raise TypeError(f"log_to: expected a logging.Logger, found {logger!r:.60}; take_log(None) sends lines to stderr again")
    take_log(lambda level, line: logger.log(_LEVELS[level], "%s", line))
