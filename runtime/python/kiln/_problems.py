"""The problems: all that is known of an operator's calls when a model is loaded, everything but M.

The mathematics, the layouts and what each member means stand in kiln's header of the operator (linear.h, router.h, moe_sort.h,
fused_moe.h). What a member is unless it is named is what kiln serves; most others are there to be declined by name."""

from ctypes import c_int64
from dataclasses import dataclass, fields

from kiln import _abi, _values
from kiln._enums import Activation, Dtype, GateUp, MoeSortQuant, MoeWeights, ScaleGranularity, Scoring, WeightLayout
from kiln._errors import Error
from kiln._library import lib


class Problem:
    """What the four have in common."""

    _struct = None

    def __post_init__(self):
        """Whatever is an integer (numpy's, say) becomes one of Python's, whose products do not wrap; an enumerator stays one."""
        types = self._struct.types
        for field in fields(self):
            value = getattr(self, field.name)
            found = _values.integer(f"{type(self).__name__}: {field.name}", value, types[field.name])
            if not isinstance(value, int):
                object.__setattr__(self, field.name, found)  # the dataclass is frozen

    def _c(self):
        return self._struct(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True)
class Linear(Problem):
    """out [M, n] = x [M, k] times the transpose of w [n, k]: fp8 with block scales, the quantiser of x fused; linear.h."""

    n: int
    k: int
    x_type: Dtype = Dtype.DEFAULT
    w_type: Dtype = Dtype.DEFAULT
    w_scale_type: Dtype = Dtype.DEFAULT
    out_type: Dtype = Dtype.DEFAULT
    w_layout: WeightLayout = WeightLayout.DEFAULT
    w_scale_granularity: ScaleGranularity = ScaleGranularity.DEFAULT
    w_scale_strided: bool = False
    x_quantised: bool = False
    bias: bool = False
    x_inner_stride: int = 1

    _struct = _abi.kiln_linear


@dataclass(frozen=True)
class Router(Problem):
    """Gate, softmax, the best experts and the shared one; router.h."""

    hidden: int
    experts: int
    top_k: int
    shared: int = 1
    x_type: Dtype = Dtype.DEFAULT
    gate_type: Dtype = Dtype.DEFAULT
    weights_type: Dtype = Dtype.DEFAULT
    scoring: Scoring = Scoring.DEFAULT
    score_bias: bool = False
    expert_groups: int = 1
    no_renormalise: bool = False
    expert_parallel: int = 1
    expert_map: bool = False
    simulated: bool = False
    gate_strided: bool = False
    x_inner_stride: int = 1

    _struct = _abi.kiln_router

    @property
    def columns(self):
        """Of ids and weights."""
        return self.top_k + self.shared


@dataclass(frozen=True)
class MoeSort(Problem):
    """Pairs (token, slot) grouped by expert, with quantised tokens as an option; moe_sort.h."""

    experts: int
    slots: int
    block_m: int
    hidden: int = 0
    quant: MoeSortQuant = MoeSortQuant.NONE
    x_type: Dtype = Dtype.DEFAULT
    expert_mask: bool = False
    num_local_tokens: bool = False
    x_inner_stride: int = 1

    _struct = _abi.kiln_moe_sort

    def rows(self, m):
        """Entries of sorted_ids and of sorted_weights for m tokens."""
        return self._size(lib.kiln_moe_sort_rows, m)

    def blocks(self, m):
        """Entries of sorted_expert_ids."""
        return self._size(lib.kiln_moe_sort_blocks, m)

    def scale_bytes(self, m):
        """Bytes of q_scale; 0 without the quantiser."""
        return self._size(lib.kiln_moe_sort_scale_bytes, m)

    def _size(self, function, m):
        m = _values.integer(f"{type(self).__name__}: m", m, c_int64)
        size = function(self._c(), m)
        if size < 0:
            raise Error(f"expected a problem that kiln serves and M in 0..{2**24 - 1}, found {self} and M = {m}", -size)
        return size


@dataclass(frozen=True)
class FusedMoe(Problem):
    """The experts of a mixture of experts: both products, the activation between them, the sum over slots; fused_moe.h."""

    hidden: int
    intermediate: int
    experts: int
    slots: int
    weights: MoeWeights = MoeWeights.DEFAULT
    activation: Activation = Activation.DEFAULT
    x_type: Dtype = Dtype.DEFAULT
    out_type: Dtype = Dtype.DEFAULT
    w_layout: WeightLayout = WeightLayout.DEFAULT
    w_scale_layout_other: bool = False
    w_scale_strided: bool = False
    x_quantised: bool = False
    bias: bool = False
    expert_mask: bool = False
    doweight_stage1: bool = False
    no_combine: bool = False
    num_local_tokens: bool = False
    x_inner_stride: int = 1
    gate_up: GateUp = GateUp.DEFAULT
    deterministic: bool = False

    _struct = _abi.kiln_fused_moe
