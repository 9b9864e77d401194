"""Checks the arrays of a launch before anything is launched: what each must be, and in words what it is instead."""

from kiln import _dlpack
from kiln._dlpack import BFLOAT, E2M1FN, E4M3FN, E8M0FNU, FLOAT, INT, UINT, DeviceType, ElementType
from kiln._errors import ArrayError

# What may stand for an element. Where libraries lack the type, an unsigned integer of its width does.
BF16 = (ElementType(BFLOAT, 16), ElementType(UINT, 16))
FP32 = (ElementType(FLOAT, 32),)
INT32 = (ElementType(INT, 32),)
FP8 = (ElementType(E4M3FN, 8), ElementType(UINT, 8))
FP4_PAIRS = (ElementType(E2M1FN, 4, 2), ElementType(UINT, 8))
E8M0 = (ElementType(E8M0FNU, 8), ElementType(UINT, 8))

_MEMORY = {
    DeviceType.CUDA: (DeviceType.CUDA_HOST, DeviceType.CUDA_MANAGED),
    DeviceType.ROCM: (DeviceType.ROCM_HOST,),
}
_NAMES = {
    DeviceType.CPU: "the host",
    DeviceType.CUDA: "CUDA device",
    DeviceType.ROCM: "ROCm device",
    DeviceType.CUDA_HOST: "pinned host memory",
    DeviceType.ROCM_HOST: "pinned host memory",
    DeviceType.CUDA_MANAGED: "managed memory",
}


class Arrays:
    """The arrays of one launch of `operator` on a device, (DeviceType, ordinal). Each method looks at one of them and gives its
    address."""

    def __init__(self, operator, device):
        self._operator = operator
        self._device = device

    def rows(self, name, array, dtype, columns):
        """[M, columns], whose rows may lie apart: M, address, elements between rows."""
        view = self._view(name, array, dtype, writes=False)
        if len(view.shape) != 2 or view.shape[1] != columns:
            self._refuse(name, f"shape [M, {columns}]", f"{list(view.shape)}")
        m = view.shape[0]
        if columns > 1 and view.strides[1] != 1 and m > 0:
            self._refuse(name, "elements of a row adjacent in memory", f"a stride of {view.strides[1]}")
        # The stride of a single row says nothing.
        return m, view.pointer, view.strides[0] if m > 1 else columns

    def array(self, name, array, dtype, shape, writes=False):
        """Of exactly this shape, contiguous."""
        view = self._view(name, array, dtype, writes)
        if view.shape != tuple(shape):
            self._refuse(name, f"shape {list(shape)}", f"{list(view.shape)}")
        return self._contiguous(name, view)

    def elements(self, name, array, dtype, size, writes=False):
        """So many elements in whatever shape, contiguous: a layout that is no matrix."""
        view = self._view(name, array, dtype, writes)
        if view.size != size:
            self._refuse(name, f"{size} elements", f"{view.size} ({list(view.shape)})")
        return self._contiguous(name, view)

    def at_least(self, name, array, dtype, size, writes=False):
        """So many elements or more, contiguous."""
        view = self._view(name, array, dtype, writes)
        if view.size < size:
            self._refuse(name, f"at least {size} elements", f"{view.size} ({list(view.shape)})")
        return self._contiguous(name, view)

    def bytes(self, name, array, size):
        """Memory of any type, at least so many bytes: a workspace. None will do where none are needed: 0, then."""
        if size == 0 and array is None:
            return 0, 0
        view = self._view(name, array, None, writes=True)
        found = view.size * view.dtype.bits * view.dtype.lanes // 8
        if found < size:
            self._refuse(name, f"at least {size} bytes", f"{found}")
        return self._contiguous(name, view), found

    def absent(self, **arrays):
        """Those that this problem has no use for."""
        for name, array in arrays.items():
            if array is not None:
                self._refuse(name, "None, since the problem has no use for it", type(array).__name__)

    def _view(self, name, array, dtype, writes):
        if not _dlpack.is_array(array):
            raise TypeError(f"{self._operator}: {name}: expected an array with __dlpack__ and __dlpack_device__, found {array!r:.60}")
        device = _dlpack.device_of(array)
        kind, ordinal = self._device
        if device != self._device and device[0] not in _MEMORY[kind]:
            self._refuse(name, f"memory of {_NAMES[kind]} {ordinal}, which the plan is for", _describe(device))
        try:
            view = _dlpack.view(array)
        except (BufferError, RuntimeError) as why:  # the producer's: a gradient is wanted, say
            raise ArrayError(f"{self._operator}: {name}: {why}") from why
        if dtype is not None and view.dtype not in dtype:
            self._refuse(name, " or ".join(str(one) for one in dtype), str(view.dtype))
        if writes and view.read_only:
            self._refuse(name, "memory that may be written", "a read-only array")
        return view

    def _contiguous(self, name, view):
        if not view.is_contiguous():
            self._refuse(name, "contiguous memory", f"shape {list(view.shape)} with strides {list(view.strides)}")
        return view.pointer

    def _refuse(self, name, expected, found):
        raise ArrayError(f"{self._operator}: {name}: expected {expected}, found {found}")


def _describe(device):
    kind, ordinal = device
    name = _NAMES.get(kind, f"DLPack device type {kind},")
    return f"{name} {ordinal}" if kind in (DeviceType.CUDA, DeviceType.ROCM) or kind not in _NAMES else name
