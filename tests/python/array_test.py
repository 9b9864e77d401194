"""What a launch makes of arrays by DLPack: types, shapes, strides, devices, and who owns what meanwhile."""

import ctypes
import gc
import unittest

import numpy as np

import kiln
import small
from kiln import _dlpack, _dlpack_producer, formats, sim
from kiln._dlpack import DeviceType, ElementType

N, K = small.LINEAR.n, small.LINEAR.k


class Other:
    """An array of another library: what __dlpack__ says of it is said here."""

    def __init__(self, array, **said):
        self.array, self.said, self.asked = array, said, []

    def __dlpack_device__(self):
        return self.said.get("device", (DeviceType.ROCM, 0))

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        if "refusal" in self.said:
            raise self.said["refusal"]
        if self.said.get("old") and "max_version" in asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        array = self.array
        made = _dlpack_producer.capsule(
            self, array.ptr, self.said.get("shape", array.shape), self.said.get("strides", (array.shape[-1], 1)),
            self.said.get("dtype", array.element_type), self.__dlpack_device__(), asked.get("max_version"),
            read_only=self.said.get("read_only", False),
        )  # fmt: skip
        if "byte_offset" in self.said:
            tensor = _dlpack.ManagedTensor.from_address(_dlpack._pointer_of(made, _dlpack.UNVERSIONED)).tensor
            tensor.data, tensor.byte_offset = array.ptr - self.said["byte_offset"], self.said["byte_offset"]
        return made


class ArrayTest(small.SmallCase):
    def setUp(self):
        super().setUp()
        self.plan = self.open().prepare(0, small.LINEAR, kiln.PrepareMode.LAZY)
        self.arrays = {
            "x": sim.array(np.zeros((3, K), np.uint16), sim.BFLOAT16),
            "w": sim.array(np.zeros((N, K), np.uint8)),
            "w_scale": sim.array(np.zeros((1, K // 128), np.float32)),
            "out": sim.empty((3, N), np.uint16, sim.BFLOAT16),
        }

    def refused(self, text, kind=kiln.ArrayError, **changed):
        with self.assertRaises(kind) as caught:
            self.plan.launch(None, **(self.arrays | changed))
        self.assertEqual(str(caught.exception), f"linear: {text}")

    def test_types(self):
        self.refused("x: expected bfloat16 or uint16, found float32", x=sim.empty((3, K), np.float32))
        self.refused("x: expected bfloat16 or uint16, found float16", x=sim.empty((3, K), np.float16))
        self.refused("w: expected float8_e4m3fn or uint8, found int8", w=sim.empty((N, K), np.int8))
        self.refused("w: expected float8_e4m3fn or uint8, found float8_e5m2", w=Other(self.arrays["w"], dtype=ElementType(12, 8)))
        self.refused("w_scale: expected float32, found float64", w_scale=sim.empty((1, K // 128), np.float64))
        self.refused("out: expected bfloat16 or uint16, found DLPack type 99 of 16 bits", out=Other(self.arrays["out"], dtype=ElementType(99, 16)))
        self.plan.arguments(**(self.arrays | {"w": Other(self.arrays["w"], dtype=ElementType(_dlpack.E4M3FN, 8))}))

    def test_shapes(self):
        self.refused(f"x: expected shape [M, {K}], found [3, {K - 1}]", x=self.arrays["x"][:, 1:])
        self.refused(f"x: expected shape [M, {K}], found [{K}]", x=self.arrays["x"][0])
        self.refused(f"w: expected {N * K} elements, found {(N - 1) * K} ([{N - 1}, {K}])", w=self.arrays["w"][1:])
        self.refused(f"w_scale: expected shape [1, {K // 128}], found [{K // 128}]", w_scale=self.arrays["w_scale"][0])
        self.refused(f"out: expected shape [3, {N}], found [2, {N}]", out=self.arrays["out"][1:])
        m, _ = self.plan.arguments(**(self.arrays | {"x": self.arrays["x"][:2], "out": self.arrays["out"][1:]}))
        self.assertEqual(m, 2)
        self.plan.arguments(**(self.arrays | {"w": sim.empty((N // 16, K // 16, 16, 16), np.uint8)}))

    def test_strides(self):
        self.refused("x: expected elements of a row adjacent in memory, found a stride of 2", x=sim.empty((3, 2 * K), np.uint16)[:, ::2])
        self.refused(
            f"out: expected contiguous memory, found shape [3, {N}] with strides [{2 * N}, 1]",
            out=sim.empty((3, 2 * N), np.uint16)[:, :N],
        )
        self.refused(
            f"w: expected contiguous memory, found shape [{N}, {K}] with strides [1, {N}]", w=Other(self.arrays["w"], strides=(1, N))
        )

    def test_the_stride_of_a_single_row_says_nothing(self):
        one = {"x": Other(self.arrays["x"], shape=(1, K), strides=(1, 1)), "out": Other(self.arrays["out"], shape=(1, N), strides=(1, 1))}
        m, arguments = self.plan.arguments(**(self.arrays | one))
        self.assertEqual((m, arguments.ldx), (1, K))

    def test_devices(self):
        place = "expected memory of ROCm device 0, which the plan is for, found"
        self.refused(f"x: {place} the host", x=np.zeros((3, K), np.uint16))
        self.refused(f"out: {place} ROCm device 1", out=Other(self.arrays["out"], device=(DeviceType.ROCM, 1)))
        self.refused(f"w: {place} CUDA device 0", w=Other(self.arrays["w"], device=(DeviceType.CUDA, 0)))
        self.refused(f"w: {place} DLPack device type 7, 0", w=Other(self.arrays["w"], device=(7, 0)))
        sim.set_device(1)
        self.addCleanup(sim.set_device, 0)
        self.refused(f"x: {place} ROCm device 1", x=sim.empty((3, K), np.uint16))
        self.plan.arguments(**(self.arrays | {"x": Other(self.arrays["x"], device=(DeviceType.ROCM_HOST, 0))}))

    def test_what_is_no_array_is_a_type_error(self):
        self.refused("out: expected an array with __dlpack__ and __dlpack_device__, found None", kind=TypeError, out=None)
        with self.assertRaisesRegex(TypeError, "w_scales"):
            self.plan.launch(None, **self.arrays, w_scales=None)
        with self.assertRaisesRegex(TypeError, "expected kiln_linear_args"):
            self.plan.launch_pointers(None, 1, kiln.RouterArguments())
        with self.assertRaisesRegex(TypeError, "expected members among"):
            kiln.LinearArguments(y=1)

    def test_memory_that_is_read_only_takes_no_results(self):
        self.refused("out: expected memory that may be written, found a read-only array", out=Other(self.arrays["out"], read_only=True))
        self.plan.arguments(**(self.arrays | {"x": Other(self.arrays["x"], read_only=True)}))

    def test_a_producers_refusal_names_the_array(self):
        for kind in (BufferError, RuntimeError):
            self.refused("w: it wants a gradient", w=Other(self.arrays["w"], refusal=kind("it wants a gradient")))

    def test_nothing_is_synchronised_and_every_version_is_taken(self):
        for old in (False, True):
            array = Other(self.arrays["x"], old=old)
            _, arguments = self.plan.arguments(**(self.arrays | {"x": array}))
            self.assertEqual(arguments.x, self.arrays["x"].ptr)
            self.assertEqual(array.asked[-1], {"stream": -1} if old else {"stream": -1, "max_version": (1, 0)})

    def test_an_array_may_begin_behind_its_memory(self):
        array = Other(self.arrays["x"], old=True, byte_offset=512)
        self.assertEqual(self.plan.arguments(**(self.arrays | {"x": array}))[1].x, self.arrays["x"].ptr)

    def test_an_array_is_given_back(self):
        before = len(_dlpack_producer._handed_out)
        for old in (False, True):
            self.plan.arguments(**(self.arrays | {"x": Other(self.arrays["x"], old=old)}))
            gc.collect()
            self.assertEqual(len(_dlpack_producer._handed_out), before)

    def test_a_consumer_that_keeps_a_capsule_gives_it_back_itself(self):
        """As numpy and torch do: they rename the capsule, and call its deleter when they are done."""
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        before = len(_dlpack_producer._handed_out)
        capsule = self.arrays["x"].__dlpack__()
        managed = _dlpack.ManagedTensor.from_address(_dlpack._pointer_of(capsule, _dlpack.UNVERSIONED))
        rename(capsule, b"used_dltensor")
        del capsule
        gc.collect()
        self.assertEqual(len(_dlpack_producer._handed_out), before + 1)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))
        self.assertEqual(len(_dlpack_producer._handed_out), before)

    def test_streams(self):
        class Protocol:
            def __cuda_stream__(self):
                return 0, 48

        class Torch:
            cuda_stream = 64

        from kiln._streams import handle

        self.assertEqual([handle(stream) for stream in (None, 0, 32, Protocol(), Torch())], [None, 0, 32, 48, 64])
        stream = sim.Stream()
        self.assertEqual(handle(stream), stream.ptr)
        with self.assertRaisesRegex(TypeError, "expected a stream"):
            self.plan.launch("default", **self.arrays)

    def test_slices_of_simulated_memory_are_views(self):
        host = np.arange(60, dtype=np.int32).reshape(4, 15)
        array = sim.array(host)
        for key in (slice(1, 3), (slice(None), slice(2, None, 3)), 2, (slice(None, None, -1), 3), (..., 4), (3, 14)):
            np.testing.assert_array_equal(array[key].read(), host[key])
        array[1:2].write(np.zeros((1, 15), np.int32))
        self.assertEqual(array.read().sum(), host.sum() - host[1].sum())
        for key in ([0, 1], host > 3, None, True):
            with self.assertRaisesRegex(TypeError, "expected integers, slices"):
                array[key]
        with self.assertRaisesRegex(ValueError, "contiguous"):
            array[:, :2].write(np.zeros((4, 2), np.int32))


class FormatsTest(unittest.TestCase):
    def setUp(self):
        self.random = small.random()

    def test_bf16_is_rounded_to_nearest_even(self):
        values = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -2.5, np.inf, 3.4e38, 1e-45], np.float32)
        np.testing.assert_array_equal(formats.to_bf16(values), [0x3F80, 0x3F80, 0x3F82, 0xC020, 0x7F80, 0x7F80, 0])
        np.testing.assert_array_equal(formats.from_bf16(np.array([0x3F80, 0xC020], np.uint16)), np.array([1, -2.5], np.float32))
        for bits in (0x7F800001, 0xFFC00000):
            found = formats.to_bf16(np.array([bits], np.uint32).view(np.float32))
            self.assertTrue(np.isnan(formats.from_bf16(found))[0])

    def test_weights_go_where_the_layout_says_and_back(self):
        w = self.random.integers(0, 256, (2, 32, 64), dtype=np.uint8)
        shuffled = formats.shuffle_weights(w)
        np.testing.assert_array_equal(
            shuffled.reshape(2, 2, 4, 16, 16), w.reshape(2, 2, 16, 4, 16).transpose(0, 1, 3, 2, 4)
        )  # (16, 16)
        for order in kiln.RowOrder:
            np.testing.assert_array_equal(formats.unshuffle_weights(formats.shuffle_weights(w, order), order), w)
        np.testing.assert_array_equal(formats.shuffle_weights(w[0]), shuffled[0])
        np.testing.assert_array_equal(formats.shuffle_weights(w[:, :, ::-1][:, :, ::-1]), shuffled)

    def test_scales_are_padded_and_come_back(self):
        scales = self.random.integers(0, 256, (3, 32, 5), dtype=np.uint8)
        shuffled = formats.shuffle_scales(scales)
        self.assertEqual(shuffled.size, 256 * 8)
        row, column = 70, 3  # of all experts
        place = row // 32 * 32 * 8 + column // 8 * 256 + column % 4 * 64 + row % 16 * 4 + column % 8 // 4 * 2 + row % 32 // 16
        self.assertEqual(shuffled[place], scales.reshape(96, 5)[row, column])
        np.testing.assert_array_equal(formats.unshuffle_scales(shuffled, scales.shape), scales)
        with self.assertRaisesRegex(kiln.ArrayError, "expected 2048 bytes"):
            formats.unshuffle_scales(shuffled[1:], scales.shape)

    def test_quantised_rows_are_worth_what_they_were(self):
        x = small.normal(self.random, 6, 256)
        exact = formats.from_bf16(x).astype(np.float64)
        q, scales = formats.quantise_1x128(x)
        self.assertEqual((q.shape, scales.shape), ((6, 256), (6, 2)))
        np.testing.assert_allclose(small.times_scales(small.e4m3(q), scales, 1, 128), exact, rtol=2**-4, atol=0.01)
        for dtype, values, columns in ((kiln.Dtype.E2M1, small.e2m1, 128), (kiln.Dtype.E4M3FN, small.e4m3, 256)):
            q, scales = formats.quantise_1x32(x, dtype)
            self.assertEqual((q.shape, scales.shape), ((6, columns), (6, 8)))
            worth = small.times_scales(values(q), 2.0 ** (scales.astype(float) - 127), 1, 32)
            self.assertLess(np.linalg.norm(worth - exact) / np.linalg.norm(exact), 0.2 if dtype == kiln.Dtype.E2M1 else 0.05)

    def test_rows_may_lie_apart(self):
        x = small.normal(self.random, 6, 512)
        for apart in (x[:, 128:384], x[::2, :256], x[:, ::2], x[::-1, :256], x[2:3, :256]):
            for made, expected in zip(formats.quantise_1x128(apart), formats.quantise_1x128(apart.copy())):
                np.testing.assert_array_equal(made, expected)

    def test_a_floor_decides_the_scale_of_zero(self):
        zero = np.zeros((1, 32), np.uint16)
        self.assertEqual(formats.quantise_1x32(zero, kiln.Dtype.E2M1)[1][0, 0], 92)
        self.assertEqual(formats.quantise_1x32(zero, kiln.Dtype.E2M1, kiln.AmaxFloor.FLOOR_NONE)[1][0, 0], 0)

    def test_what_does_not_fit_is_said(self):
        with self.assertRaisesRegex(kiln.ArrayError, "x: expected a numpy array of uint16, found float32"):
            formats.quantise_1x128(np.zeros((1, 128), np.float32))
        with self.assertRaisesRegex(kiln.ArrayError, "weights: expected .rows, columns. or .*, found .128."):
            formats.shuffle_weights(np.zeros(128, np.uint8))
        with self.assertRaisesRegex(kiln.ArrayError, "found list"):
            formats.from_bf16([1])
        for call in (
            lambda: formats.quantise_1x128(np.zeros((1, 100), np.uint16)),
            lambda: formats.shuffle_weights(np.zeros((15, 32), np.uint8)),
            lambda: formats.quantise_1x32(np.zeros((1, 32), np.uint16), kiln.Dtype.FP16),
        ):
            with self.assertRaises(kiln.Error) as caught:
                call()
            self.assertEqual(caught.exception.code, kiln.ErrorCode.INVALID_ARGUMENT)


if __name__ == "__main__":
    unittest.main()
