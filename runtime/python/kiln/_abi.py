"""kiln's C ABI as ctypes sees it: every struct and function of kiln.h and formats.h, and nothing else.

What a struct or a function means stands in those headers. tests/python/abi_test.py fails when this file and they no longer
say the same: a size, an offset, a member's type, a function that is new or takes something else."""

from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from ctypes import sizeof

from kiln import _values

VERSION = (0, 1, 0)  # of the headers that this was written from


def _opaque(name):
    return type(name, (Structure,), {"__doc__": "Behind a handle."})


kiln_service = _opaque("kiln_service")
kiln_plan = _opaque("kiln_plan")
kiln_error = _opaque("kiln_error")


class Checked(Structure):
    """A struct whose members are set to what they can be, and to nothing else. ctypes itself would make an attribute of a name that
    is none of them."""

    def __init_subclass__(cls):
        super().__init_subclass__()
        cls.types = dict(getattr(cls, "_fields_", ()))  # by name

    def __init__(self, **members):
        super().__init__()
        for name, value in members.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        struct = type(self).__name__
        if name not in self.types:
            raise TypeError(f"{struct}: expected members among {', '.join(sorted(self.types))}, found {name}")
        super().__setattr__(name, _values.member(f"{struct}: {name}", value, self.types[name]))


class Versioned(Checked):
    """A struct that begins with struct_size, which is set here; all else is zero unless it is named."""

    def __init__(self, **members):
        super().__init__(struct_size=sizeof(type(self)), **members)


class Arguments(Checked):
    """The arrays of one launch, as addresses: integers, 0 or None for NULL."""


class kiln_config(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cache_dir", c_char_p),
        ("shapes_path", c_char_p),
        ("kernel_path", c_char_p),
        ("target", c_char_p),
        ("device", c_char_p),
        ("jit", c_char_p),
        ("disable", c_char_p),
        ("worker", c_char_p),
        ("hip_library", c_char_p),
        ("log", c_char_p),
        ("workers", c_uint32),
        ("compile_in_process", c_uint32),
        ("cache_path", c_char_p),
        ("cache_limit_bytes", c_uint64),
        ("cuda_library", c_char_p),
        ("log_format", c_char_p),
    ]


class kiln_statistics(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cache_hits", c_uint64),
        ("cache_misses", c_uint64),
        ("cache_damaged", c_uint64),
        ("memory_hits", c_uint64),
        ("compiles", c_uint64),
        ("compile_errors", c_uint64),
        ("loads", c_uint64),
        ("compile_seconds", c_double),
        ("layer_hits", c_uint64),
        ("evictions", c_uint64),
        ("declines", c_uint64),
        ("disabled", c_uint64),
        ("reloads", c_uint64),
        ("other_compiler_hits", c_uint64),
    ]


class kiln_label(Checked):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class kiln_device_info(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char * 128),
        ("target", c_char * 64),
        ("num_compute_units", c_int32),
        ("simulated", c_int32),
        ("memory_bytes", c_uint64),
    ]


class kiln_prepare_options(Versioned):
    _fields_ = [("struct_size", c_size_t), ("mode", c_int32), ("reserved", c_int32)]


class kiln_linear(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("n", c_int64),
        ("k", c_int64),
        ("x_type", c_int32),
        ("w_type", c_int32),
        ("w_scale_type", c_int32),
        ("out_type", c_int32),
        ("w_layout", c_int32),
        ("w_scale_granularity", c_int32),
        ("w_scale_strided", c_int32),
        ("x_quantised", c_int32),
        ("bias", c_int32),
        ("reserved", c_int32),
        ("x_inner_stride", c_int64),
    ]


class kiln_linear_args(Arguments):
    _fields_ = [("x", c_void_p), ("ldx", c_int64), ("w", c_void_p), ("w_scale", c_void_p), ("out", c_void_p)]


class kiln_router(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("hidden", c_int64),
        ("experts", c_int64),
        ("top_k", c_int64),
        ("shared", c_int32),
        ("x_type", c_int32),
        ("gate_type", c_int32),
        ("weights_type", c_int32),
        ("scoring", c_int32),
        ("score_bias", c_int32),
        ("expert_groups", c_int32),
        ("no_renormalise", c_int32),
        ("expert_parallel", c_int32),
        ("expert_map", c_int32),
        ("simulated", c_int32),
        ("gate_strided", c_int32),
        ("x_inner_stride", c_int64),
        ("reserved", c_int64),
    ]


class kiln_router_args(Arguments):
    _fields_ = [
        ("x", c_void_p),
        ("ldx", c_int64),
        ("gate", c_void_p),
        ("shared_gate", c_void_p),
        ("ids", c_void_p),
        ("weights", c_void_p),
        ("scale", c_float),
        ("workspace", c_void_p),
    ]


class kiln_moe_sort(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("experts", c_int64),
        ("slots", c_int64),
        ("block_m", c_int64),
        ("hidden", c_int64),
        ("quant", c_int32),
        ("x_type", c_int32),
        ("expert_mask", c_int32),
        ("num_local_tokens", c_int32),
        ("x_inner_stride", c_int64),
        ("reserved", c_int64),
    ]


class kiln_moe_sort_args(Arguments):
    _fields_ = [
        ("ids", c_void_p),
        ("weights", c_void_p),
        ("x", c_void_p),
        ("ldx", c_int64),
        ("sorted_ids", c_void_p),
        ("sorted_weights", c_void_p),
        ("sorted_expert_ids", c_void_p),
        ("num_valid", c_void_p),
        ("moe_buf", c_void_p),
        ("q", c_void_p),
        ("q_scale", c_void_p),
        ("workspace", c_void_p),
    ]


class kiln_fused_moe(Versioned):
    _fields_ = [
        ("struct_size", c_size_t),
        ("hidden", c_int64),
        ("intermediate", c_int64),
        ("experts", c_int64),
        ("slots", c_int64),
        ("weights", c_int32),
        ("activation", c_int32),
        ("x_type", c_int32),
        ("out_type", c_int32),
        ("w_layout", c_int32),
        ("w_scale_layout_other", c_int32),
        ("w_scale_strided", c_int32),
        ("x_quantised", c_int32),
        ("bias", c_int32),
        ("expert_mask", c_int32),
        ("doweight_stage1", c_int32),
        ("no_combine", c_int32),
        ("num_local_tokens", c_int32),
        ("reserved", c_int32),
        ("x_inner_stride", c_int64),
        ("gate_up", c_int32),
        ("deterministic", c_int32),
    ]


class kiln_fused_moe_args(Arguments):
    _fields_ = [
        ("x", c_void_p),
        ("ldx", c_int64),
        ("w13", c_void_p),
        ("w13_scale", c_void_p),
        ("w2", c_void_p),
        ("w2_scale", c_void_p),
        ("ids", c_void_p),
        ("weights", c_void_p),
        ("out", c_void_p),
        ("invalid_id", c_void_p),
        ("workspace", c_void_p),
    ]


STRUCTS = [
    kiln_config, kiln_statistics, kiln_label, kiln_device_info, kiln_prepare_options,
    kiln_linear, kiln_linear_args, kiln_router, kiln_router_args,
    kiln_moe_sort, kiln_moe_sort_args, kiln_fused_moe, kiln_fused_moe_args,
]  # fmt: skip

kiln_log_callback = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
CALLBACKS = {"kiln_log_callback": kiln_log_callback}

_status = c_int32
_service, _plan = POINTER(kiln_service), POINTER(kiln_plan)
_why = POINTER(POINTER(kiln_error))
_shuffle = (_status, [c_void_p, c_int64, c_int64, c_int64, c_int32, c_void_p, _why])

# name: (result, parameters)
FUNCTIONS = {
    "kiln_decline_text": (c_char_p, [c_int32]),
    "kiln_status_text": (c_char_p, [_status]),
    "kiln_error_get_status": (_status, [POINTER(kiln_error)]),
    "kiln_error_get_code": (c_int32, [POINTER(kiln_error)]),
    "kiln_error_get_stage": (c_int32, [POINTER(kiln_error)]),
    "kiln_error_get_message": (c_char_p, [POINTER(kiln_error)]),
    "kiln_error_free": (None, [POINTER(kiln_error)]),
    "kiln_version": (c_char_p, []),
    "kiln_service_open": (_status, [POINTER(kiln_config), POINTER(_service), _why]),
    "kiln_service_retain": (_service, [_service]),
    "kiln_service_release": (None, [_service]),
    "kiln_service_reload": (_status, [_service, _why]),
    "kiln_service_statistics": (_status, [_service, POINTER(kiln_statistics)]),
    "kiln_service_metrics": (_status, [_service, POINTER(kiln_label), c_size_t, POINTER(POINTER(c_char)), _why]),
    "kiln_text_free": (None, [POINTER(c_char)]),
    "kiln_log_set": (_status, [c_char_p, c_char_p, _why]),
    "kiln_log_set_callback": (_status, [kiln_log_callback, c_void_p]),
    "kiln_device_count": (_status, [_service, POINTER(c_int32), _why]),
    "kiln_device_get_info": (_status, [_service, c_int32, POINTER(kiln_device_info), _why]),
    "kiln_plan_retain": (_plan, [_plan]),
    "kiln_plan_release": (None, [_plan]),
    "kiln_plan_ready": (_status, [_plan, c_int64]),
    "kiln_plan_wait": (_status, [_plan, c_int64, _why]),
    "kiln_plan_workspace_bytes": (c_int64, [_plan, c_int64]),
    "kiln_plan_init_workspace": (_status, [_plan, c_void_p, c_void_p, c_int64, _why]),
    "kiln_plan_device": (c_int32, [_plan]),
    "kiln_plan_max_m": (c_int64, [_plan]),
    "kiln_plan_kernel_name": (c_char_p, [_plan, c_int64]),
    "kiln_moe_sort_rows": (c_int64, [POINTER(kiln_moe_sort), c_int64]),
    "kiln_moe_sort_blocks": (c_int64, [POINTER(kiln_moe_sort), c_int64]),
    "kiln_moe_sort_scale_bytes": (c_int64, [POINTER(kiln_moe_sort), c_int64]),
    "kiln_shuffle_weights": _shuffle,
    "kiln_unshuffle_weights": _shuffle,
    "kiln_shuffle_scales": _shuffle,
    "kiln_unshuffle_scales": _shuffle,
    "kiln_shuffled_scales_bytes": (c_int64, [c_int64, c_int64, c_int64]),
    "kiln_quantise_1x128": (_status, [c_void_p, c_int64, c_int64, c_int64, c_void_p, POINTER(c_float), _why]),
    "kiln_quantise_1x32": (_status, [c_void_p, c_int64, c_int64, c_int64, c_int32, c_int32, c_void_p, c_void_p, _why]),
}
for _problem, _args in (
    (kiln_linear, kiln_linear_args),
    (kiln_router, kiln_router_args),
    (kiln_moe_sort, kiln_moe_sort_args),
    (kiln_fused_moe, kiln_fused_moe_args),
):
    _name = _problem.__name__
    FUNCTIONS[f"{_name}_supports"] = (_status, [_service, c_int32, POINTER(_problem), _why])
    FUNCTIONS[f"{_name}_prepare"] = (
        _status, [_service, c_int32, POINTER(_problem), POINTER(kiln_prepare_options), POINTER(_plan), _why]
    )  # fmt: skip
    FUNCTIONS[f"{_name}_launch"] = (_status, [_plan, c_void_p, c_int64, POINTER(_args)])


def declare(library):
    """Gives every function of an opened libkiln its types."""
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
