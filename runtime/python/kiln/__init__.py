"""kiln for Python: services, plans and launches over libkiln's C ABI, with ctypes and nothing else.

    import kiln

    service = kiln.Service()                                            # tables, cache; starts nothing
    qkv = service.prepare(0, kiln.Linear(n=4608, k=4096))               # device 0: from the cache, else compiled
    try:
        qkv.launch(stream, x=x, w=w, w_scale=w_scale, out=out)          # any arrays with __dlpack__, on your stream
    except kiln.Declined as declined:
        print(declined.reason, declined)                                # M out of range, say: keep your own path

What operators compute, and the layouts of their arrays, stands in kiln's headers (kiln.h and those that it includes); names here
are those of the headers. kiln.formats prepares weights as numpy arrays, kiln.sim is memory, streams and graphs of the simulator.
Neither is imported by `import kiln`, which wants nothing but Python 3.9 or newer.

libkiln is the one that KILN_LIBRARY names, else the one beside which this package was installed or built."""

from kiln._abi import VERSION as _VERSION
from kiln._abi import kiln_fused_moe_args as FusedMoeArguments
from kiln._abi import kiln_linear_args as LinearArguments
from kiln._abi import kiln_moe_sort_args as MoeSortArguments
from kiln._abi import kiln_router_args as RouterArguments
from kiln._enums import (
    Activation, AmaxFloor, Decline, Dtype, ErrorCode, GateUp, LogLevel, MoeSortQuant, MoeWeights, PrepareMode, RowOrder,
    ScaleGranularity, Scoring, Stage, WeightLayout,
)  # fmt: skip
from kiln._errors import ArrayError, Declined, Error, decline_text
from kiln._library import lib as _lib
from kiln._library import path as library_path
from kiln._log import log_to, set_log, take_log
from kiln._plans import Answer, FusedMoePlan, LinearPlan, MoeSortPlan, Plan, RouterPlan
from kiln._problems import FusedMoe, Linear, MoeSort, Router
from kiln._service import NO_DEVICE, DeviceInfo, Service, Statistics

__version__ = ".".join(map(str, _VERSION))


def library_version():
    """Of the libkiln that is loaded."""
    return _lib.kiln_version().decode()


__all__ = [
    "Activation", "AmaxFloor", "Answer", "ArrayError", "Decline", "Declined", "DeviceInfo", "Dtype", "Error", "ErrorCode",
    "FusedMoe", "FusedMoeArguments", "FusedMoePlan", "GateUp", "Linear", "LinearArguments", "LinearPlan", "LogLevel",
    "MoeSort", "MoeSortArguments", "MoeSortPlan", "MoeSortQuant", "MoeWeights", "NO_DEVICE", "Plan", "PrepareMode", "RouterPlan",
    "Router", "RouterArguments", "RowOrder", "ScaleGranularity", "Scoring", "Service", "Stage", "Statistics", "WeightLayout",
    "decline_text", "library_path", "library_version", "log_to", "set_log", "take_log",
]  # fmt: skip
