"""Plans, one class for each operator."""

import ctypes
import math
import weakref
from ctypes import c_int64, c_void_p

from kiln import _abi
from kiln._arrays import BF16, E8M0, FP4_PAIRS, FP8, FP32, INT32, Arrays
from kiln._enums import Decline, MoeSortQuant, MoeWeights
from kiln._errors import ArrayError, Declined, call, failure
from kiln._library import lib
from kiln._problems import FusedMoe, Linear, MoeSort, Router
from kiln._streams import handle
from kiln._values import INTEGERS, integer, member

_SCALE_BLOCK = 128  # rows and columns that share a scale of fp8 weights


class Answer:
    """Whether, and why not: true, or false with a `reason` (Decline) and a `message`."""

    def __init__(self, declined=None):
        self.reason = declined.reason if declined else None
        self.message = declined.message if declined else "done"

    def __bool__(self):
        return self.reason is None

    def __repr__(self):
        return "<kiln.Answer: yes>" if self else f"<kiln.Answer: no, {self.reason!r}: {self.message}>"


class Plan:
    """A problem resolved for one device; Service.prepare makes it. Launchable from any number of threads, on any stream of its
    device, and inside a graph capture.

    It must outlive what it launched: close it, or let go of it, only after its launches have run and the graphs that captured
    them are gone. The thread's current device must be the plan's; kiln never changes it.

    Launches are ordered by their stream alone, as any kernel's: nothing is done about work on arrays in other streams."""

    Arguments = None  # the struct of a launch's addresses
    _launch = None
    _operator = None

    def __init__(self, reference, problem, device_type):
        self.problem = problem
        self._plan = reference
        self._close = weakref.finalize(self, lib.kiln_plan_release, reference)
        self._close.atexit = False  # a thread of Python that goes on to the end may be using it
        self.device = lib.kiln_plan_device(reference)
        self.max_m = lib.kiln_plan_max_m(reference)  # the largest M that is covered
        self._where = (device_type, self.device)

    def close(self):
        """Unloads the plan's kernels, now rather than when it is let go of. It can not be used after that."""
        if self._close.alive:
            self._close()
            self._plan = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def launch_pointers(self, stream, m, arguments):
        """Enqueues M tokens with addresses for arrays, an object of this class's `Arguments`, and returns. Nothing is checked
        but what kiln's launch does. Raises Declined or Error."""
        if not isinstance(arguments, self.Arguments):
            raise TypeError(f"{self._operator}: expected {self.Arguments.__name__}, found {arguments!r:.60}")
        status = self._launch(self._plan, handle(stream), integer("m", m, c_int64), ctypes.byref(arguments))
        if status != 0:
            raise failure(status)

    def ready(self, m):
        """What a launch of this M would find, without a wait: an Answer. Raises Error where obtaining its kernel failed."""
        status = lib.kiln_plan_ready(self._plan, integer("m", m, c_int64))
        if status < 0:
            raise failure(status)
        return Answer(failure(status) if status else None)

    def wait(self, seconds=None):
        """Has every bucket that is not ready obtained and waits: True when all are, False when that takes longer than so many
        seconds (None: no limit; 0: only looks). Raises what a bucket's failure ended with."""
        try:
            call(lib.kiln_plan_wait, self._plan, _milliseconds(seconds))
        except Declined as declined:
            if declined.reason == Decline.COMPILING:
                return False
            raise
        return True

    def workspace_bytes(self, max_m):
        """How many bytes of workspace launches of up to max_m tokens need; 0: none. One for each stream and each plan."""
        return lib.kiln_plan_workspace_bytes(self._plan, integer("max_m", max_m, c_int64))

    def init_workspace(self, stream, workspace, size=None):
        """Readies a new workspace, once: an array, all of it, or an address with its `size` in bytes."""
        if size is None:
            workspace, size = Arrays(self._operator, self._where).bytes("workspace", workspace, 0)
        workspace, size = member("workspace", workspace, c_void_p), integer("size", size, c_int64)
        call(lib.kiln_plan_init_workspace, self._plan, handle(stream), workspace, size)

    def kernel_name(self, m):
        """The symbol that a launch of this M runs, as a profiler shows it; None when none does."""
        name = lib.kiln_plan_kernel_name(self._plan, integer("m", m, c_int64))
        return name.decode() if name is not None else None

    def _arrays(self):
        return Arrays(self._operator, self._where)

    def _workspace(self, arrays, workspace, m):
        return arrays.bytes("workspace", workspace, self.workspace_bytes(m))[0]


def _milliseconds(seconds):
    """As kiln_plan_wait takes them; more than it could count is no limit either."""
    if seconds is None or seconds >= INTEGERS[c_int64][1] // 1000:
        return -1
    if seconds != seconds:
        raise ValueError(f"seconds: expected how long to wait, found {seconds}")
    return math.ceil(seconds * 1000) if seconds > 0 else 0


class LinearPlan(Plan):
    """A plan of Linear."""

    Arguments = _abi.kiln_linear_args
    _launch = lib.kiln_linear_launch
    _operator = "linear"

    def launch(self, stream, *, x, w, w_scale, out):
        """Enqueues out = linear(x, w) on `stream`: x bf16 [M, k], whose rows may lie apart; w e4m3fn, preshuffled, n * k
        elements in any shape; w_scale float32 [ceil(n/128), k/128]; out bf16 [M, n]. M is that of x."""
        self.launch_pointers(stream, *self.arguments(x=x, w=w, w_scale=w_scale, out=out))

    def arguments(self, *, x, w, w_scale, out):
        """Checks the arrays as launch does, once: M and the addresses for launch_pointers. Keep the arrays."""
        n, k = self.problem.n, self.problem.k
        arrays = self._arrays()
        m, x, ldx = arrays.rows("x", x, BF16, k)
        return m, self.Arguments(
            x=x,
            ldx=ldx,
            w=arrays.elements("w", w, FP8, n * k),
            w_scale=arrays.array("w_scale", w_scale, FP32, (-(-n // _SCALE_BLOCK), k // _SCALE_BLOCK)),
            out=arrays.array("out", out, BF16, (m, n), writes=True),
        )


class RouterPlan(Plan):
    """A plan of Router."""

    Arguments = _abi.kiln_router_args
    _launch = lib.kiln_router_launch
    _operator = "router"

    def launch(self, stream, *, x, gate, ids, weights, workspace, shared_gate=None, scale=1.0):
        """Enqueues the routing of x, bf16 [M, hidden], on `stream`: gate bf16 [experts, hidden]; with a shared expert
        shared_gate bf16 [hidden]; ids int32 and weights float32 [M, top_k + shared]."""
        self.launch_pointers(
            stream,
            *self.arguments(
                x=x, gate=gate, ids=ids, weights=weights, workspace=workspace, shared_gate=shared_gate, scale=scale
            ),
        )

    def arguments(self, *, x, gate, ids, weights, workspace, shared_gate=None, scale=1.0):
        """Checks the arrays as launch does, once: M and the addresses for launch_pointers. Keep the arrays."""
        problem = self.problem
        arrays = self._arrays()
        m, x, ldx = arrays.rows("x", x, BF16, problem.hidden)
        chosen = (m, problem.columns)
        if problem.shared:
            shared_gate = arrays.elements("shared_gate", shared_gate, BF16, problem.hidden)
        else:
            arrays.absent(shared_gate=shared_gate)
        return m, self.Arguments(
            x=x,
            ldx=ldx,
            gate=arrays.array("gate", gate, BF16, (problem.experts, problem.hidden)),
            shared_gate=shared_gate,
            ids=arrays.array("ids", ids, INT32, chosen, writes=True),
            weights=arrays.array("weights", weights, FP32, chosen, writes=True),
            scale=scale,
            workspace=self._workspace(arrays, workspace, m),
        )


class MoeSortPlan(Plan):
    """A plan of MoeSort. The problem's rows(), blocks() and scale_bytes() size the results."""

    Arguments = _abi.kiln_moe_sort_args
    _launch = lib.kiln_moe_sort_launch
    _operator = "moe_sort"

    def launch(self, stream, *, ids, weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid,
               x=None, moe_buf=None, q=None, q_scale=None, workspace=None):  # fmt: skip
        """Enqueues the sort of ids int32 and weights float32 [M, slots] on `stream`: sorted_ids int32, sorted_weights float32
        and sorted_expert_ids int32 of the problem's sizes or larger, num_valid int32 [2]; where hidden is not 0, moe_buf bf16
        [M, hidden]; with the quantiser x bf16 [M, hidden], whose rows may lie apart, q e4m3fn [M, hidden], and q_scale e8m0."""
        self.launch_pointers(
            stream,
            *self.arguments(
                ids=ids, weights=weights, sorted_ids=sorted_ids, sorted_weights=sorted_weights,
                sorted_expert_ids=sorted_expert_ids, num_valid=num_valid, x=x, moe_buf=moe_buf, q=q, q_scale=q_scale,
                workspace=workspace,
            ),
        )  # fmt: skip

    def arguments(self, *, ids, weights, sorted_ids, sorted_weights, sorted_expert_ids, num_valid,
                  x=None, moe_buf=None, q=None, q_scale=None, workspace=None):  # fmt: skip
        """Checks the arrays as launch does, once: M and the addresses for launch_pointers. Keep the arrays."""
        problem = self.problem
        arrays = self._arrays()
        m, ids, stride = arrays.rows("ids", ids, INT32, problem.slots)
        if stride != problem.slots:
            raise ArrayError(f"moe_sort: ids: expected contiguous memory, found rows {stride} elements apart")
        rows, blocks = problem.rows(m), problem.blocks(m)
        given = self.Arguments(
            ids=ids,
            weights=arrays.array("weights", weights, FP32, (m, problem.slots)),
            sorted_ids=arrays.at_least("sorted_ids", sorted_ids, INT32, rows, writes=True),
            sorted_weights=arrays.at_least("sorted_weights", sorted_weights, FP32, rows, writes=True),
            sorted_expert_ids=arrays.at_least("sorted_expert_ids", sorted_expert_ids, INT32, blocks, writes=True),
            num_valid=arrays.array("num_valid", num_valid, INT32, (2,), writes=True),
            workspace=self._workspace(arrays, workspace, m),
        )
        if problem.hidden:
            given.moe_buf = arrays.array("moe_buf", moe_buf, BF16, (m, problem.hidden), writes=True)
        else:
            arrays.absent(moe_buf=moe_buf)
        if problem.quant != MoeSortQuant.NONE:
            tokens, given.x, given.ldx = arrays.rows("x", x, BF16, problem.hidden)
            if tokens != m:
                raise ArrayError(f"moe_sort: x: expected {m} rows, as ids has, found {tokens}")
            given.q = arrays.array("q", q, FP8, (m, problem.hidden), writes=True)
            given.q_scale = arrays.at_least("q_scale", q_scale, E8M0, problem.scale_bytes(m), writes=True)
        else:
            arrays.absent(x=x, q=q, q_scale=q_scale)
        return m, given


class FusedMoePlan(Plan):
    """A plan of FusedMoe."""

    Arguments = _abi.kiln_fused_moe_args
    _launch = lib.kiln_fused_moe_launch
    _operator = "fused_moe"

    def launch(self, stream, *, x, w13, w13_scale, w2, w2_scale, ids, weights, out, workspace, invalid_id=None):
        """Enqueues the experts of x, bf16 [M, hidden], whose rows may lie apart, on `stream`: ids int32 and weights float32
        [M, slots]; out bf16 [M, hidden]; invalid_id int32 [1], if anybody looks at it. The experts' weights and scales are
        taken in any shape that has their number of elements, as kiln.formats makes them: bytes for mxfp4, two elements each;
        e4m3fn for fp8, with scales float32."""
        self.launch_pointers(
            stream,
            *self.arguments(
                x=x, w13=w13, w13_scale=w13_scale, w2=w2, w2_scale=w2_scale, ids=ids, weights=weights, out=out,
                workspace=workspace, invalid_id=invalid_id,
            ),
        )  # fmt: skip

    def arguments(self, *, x, w13, w13_scale, w2, w2_scale, ids, weights, out, workspace, invalid_id=None):
        """Checks the arrays as launch does, once: M and the addresses for launch_pointers. Keep the arrays."""
        problem = self.problem
        arrays = self._arrays()
        m, x, ldx = arrays.rows("x", x, BF16, problem.hidden)
        chosen = (m, problem.slots)
        w13, w13_scale = self._weights(arrays, "w13", w13, w13_scale, 2 * problem.intermediate, problem.hidden)
        w2, w2_scale = self._weights(arrays, "w2", w2, w2_scale, problem.hidden, problem.intermediate)
        return m, self.Arguments(
            x=x,
            ldx=ldx,
            w13=w13,
            w13_scale=w13_scale,
            w2=w2,
            w2_scale=w2_scale,
            ids=arrays.array("ids", ids, INT32, chosen),
            weights=arrays.array("weights", weights, FP32, chosen),
            out=arrays.array("out", out, BF16, (m, problem.hidden), writes=True),
            invalid_id=None if invalid_id is None else arrays.elements("invalid_id", invalid_id, INT32, 1, writes=True),
            workspace=self._workspace(arrays, workspace, m),
        )

    def _weights(self, arrays, name, w, scale, rows, k):
        experts = self.problem.experts
        scales = f"{name}_scale"
        if self.problem.weights == MoeWeights.FP8:
            blocks = experts * (rows // _SCALE_BLOCK) * (k // _SCALE_BLOCK)
            return arrays.elements(name, w, FP8, experts * rows * k), arrays.elements(scales, scale, FP32, blocks)
        size = lib.kiln_shuffled_scales_bytes(experts, rows, k // 32)
        return arrays.elements(name, w, FP4_PAIRS, experts * rows * k // 2), arrays.elements(scales, scale, E8M0, size)


PLANS = {Linear: LinearPlan, Router: RouterPlan, MoeSort: MoeSortPlan, FusedMoe: FusedMoePlan}
