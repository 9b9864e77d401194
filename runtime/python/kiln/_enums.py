"""The enumerations of kiln.h and formats.h. The headers say what their values mean; they never change."""

from enum import IntEnum


class Decline(IntEnum):
    """A reason to decline; `text` is a sentence."""

    SHAPE = 1
    PROCESSOR = 2
    TARGET_FEATURE = 3
    SWITCHED_OFF = 4
    DISABLED = 5
    COMPILER = 6
    DIMENSIONS = 7
    X_TYPE = 8
    X_QUANTISED = 9
    X_INNER_STRIDE = 10
    W_TYPE = 11
    W_LAYOUT = 12
    W_SCALE_TYPE = 13
    W_SCALE_SHAPE = 14
    W_SCALE_STRIDE = 15
    OUT_TYPE = 16
    BIAS = 17
    SHARED_EXPERTS = 18
    RENORMALISE = 19
    EXPERT_PARALLEL = 20
    EXPERT_MAP = 21
    SIMULATED_ROUTING = 22
    SCORING = 23
    EXPERT_MASK = 24
    LOCAL_TOKENS = 25
    ACTIVATION = 26
    WEIGHTED_STAGE_1 = 27
    NOT_COMBINED = 28
    W_SCALE_LAYOUT = 29
    GATE_STRIDE = 41
    NOT_DETERMINISTIC = 42
    M_NEGATIVE = 64
    M_TOO_LARGE = 65
    NULL_POINTER = 66
    X_ALIGNMENT = 67
    X_ROW_STRIDE = 68
    W_ALIGNMENT = 69
    W_SCALE_ALIGNMENT = 70
    OUT_ALIGNMENT = 71
    OTHER_DEVICE = 72
    COMPILING = 73
    CAPTURE = 74
    IDS_ALIGNMENT = 75
    WEIGHTS_ALIGNMENT = 76
    WORKSPACE_ALIGNMENT = 77
    SORTED_ALIGNMENT = 79
    MOE_BUF_ALIGNMENT = 80
    Q_ALIGNMENT = 81
    Q_SCALE_ALIGNMENT = 82
    GATE_ALIGNMENT = 85
    FLAG_ALIGNMENT = 86


class ErrorCode(IntEnum):
    INVALID_ARGUMENT = 1
    BAD_INPUT = 2
    NOT_FOUND = 3
    ENVIRONMENT = 4
    IO = 5
    DAMAGED = 6
    COMPILE_FAILED = 7
    WORKER_FAILED = 8
    LOAD_FAILED = 9
    LAUNCH_FAILED = 10
    DEVICE_FAILED = 11
    INTERNAL = 12


class Stage(IntEnum):
    CONFIGURE = 1
    TABLE = 2
    CACHE = 3
    COMPILE = 4
    LOAD = 5
    LAUNCH = 6
    DEVICE = 7


class LogLevel(IntEnum):
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


class PrepareMode(IntEnum):
    BLOCKING = 0
    LAZY = 1
    BACKGROUND = 2


class Dtype(IntEnum):
    DEFAULT = 0
    BF16 = 1
    FP16 = 2
    FP32 = 3
    E4M3FN = 4
    E4M3FNUZ = 5
    E5M2 = 6
    E2M1 = 7
    E8M0 = 8


class WeightLayout(IntEnum):
    DEFAULT = 0
    PRESHUFFLED = 1
    ROW_MAJOR = 2


class ScaleGranularity(IntEnum):
    DEFAULT = 0
    BLOCK_128X128 = 1
    PER_TENSOR = 2
    PER_ROW = 3
    GROUP_32 = 4


class Scoring(IntEnum):
    DEFAULT = 0
    SOFTMAX = 1
    SIGMOID = 2


class MoeSortQuant(IntEnum):
    NONE = 0
    MXFP8 = 1


class MoeWeights(IntEnum):
    DEFAULT = 0
    MXFP4 = 1
    FP8 = 2
    FP8_PER_TENSOR = 3
    FP8_PER_ROW = 4
    MXFP8 = 5
    FP8_FNUZ = 6
    BF16 = 7
    INT4 = 8


class Activation(IntEnum):
    DEFAULT = 0
    SILU = 1
    GELU = 2
    SWIGLU_CLAMPED = 3


class GateUp(IntEnum):
    DEFAULT = 0
    SEPARATED = 1
    INTERLEAVED = 2


class RowOrder(IntEnum):
    AS_THEY_ARE = 0
    GATE_UP_INTERLEAVED = 1


class AmaxFloor(IntEnum):
    FLOOR_1E_10 = 0
    FLOOR_NONE = 1


# Each enumeration in C, and what the names of its values begin with there.
C_NAMES = {
    "kiln_decline": (Decline, "KILN_DECLINE_"),
    "kiln_error_code": (ErrorCode, "KILN_ERROR_"),
    "kiln_stage": (Stage, "KILN_STAGE_"),
    "kiln_log_level": (LogLevel, "KILN_LOG_"),
    "kiln_prepare_mode": (PrepareMode, "KILN_PREPARE_"),
    "kiln_dtype": (Dtype, "KILN_DTYPE_"),
    "kiln_weight_layout": (WeightLayout, "KILN_WEIGHT_LAYOUT_"),
    "kiln_scale_granularity": (ScaleGranularity, "KILN_SCALE_"),
    "kiln_scoring": (Scoring, "KILN_SCORING_"),
    "kiln_moe_sort_quant": (MoeSortQuant, "KILN_MOE_SORT_QUANT_"),
    "kiln_moe_weights": (MoeWeights, "KILN_MOE_WEIGHTS_"),
    "kiln_activation": (Activation, "KILN_ACTIVATION_"),
    "kiln_gate_up": (GateUp, "KILN_GATE_UP_"),
    "kiln_row_order": (RowOrder, "KILN_ROWS_"),
    "kiln_amax_floor": (AmaxFloor, "KILN_AMAX_"),
}
