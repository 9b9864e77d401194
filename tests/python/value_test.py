"""What Python may say and C could not hold: refused by name, before anything is called."""

import math
import os
import pathlib
import unittest

import numpy as np

import kiln
import small
from kiln import _values, formats, sim

INT32, INT64 = "-2147483648..2147483647", f"{-(2**63)}..{2**63 - 1}"
ADDRESS = f"0..{2**64 - 1}"


class ValueTest(small.SmallCase):
    def refused(self, text, call, kind=ValueError):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def out_of(self, limits, name, value, call):
        self.refused(f"{name}: expected an integer in {limits}, found {value}", call)

    def lazy(self, problem=small.LINEAR):
        return self.open().prepare(0, problem, kiln.PrepareMode.LAZY)

    def test_the_limits_are_those_of_the_c_types(self):
        for kind, limits in _values.INTEGERS.items():
            for value in limits:
                self.assertEqual(kind(value).value or 0, value, kind)
                self.assertEqual(_values.integer("it", value, kind), value)
            for value in (limits[0] - 1, limits[1] + 1):
                self.assertNotEqual(kind(value).value or 0, value, kind)
                self.out_of(f"{limits[0]}..{limits[1]}", "it", value, lambda: _values.integer("it", value, kind))

    def test_problems(self):
        self.out_of(INT64, "Linear: n", 2**64 + 4096, lambda: kiln.Linear(n=2**64 + 4096, k=4096))
        self.out_of(INT32, "Router: shared", 2**31, lambda: kiln.Router(hidden=256, experts=32, top_k=3, shared=2**31))
        self.out_of(INT64, "MoeSort: m", -(2**63) - 1, lambda: small.SORT.rows(-(2**63) - 1))
        for call in (small.SORT.rows, small.SORT.blocks, small.SORT.scale_bytes):
            self.out_of(INT64, "MoeSort: m", 2**64 + 4, lambda: call(2**64 + 4))
        self.refused("Linear: k: expected an integer, found '256' (str)", lambda: kiln.Linear(n=64, k="256"), TypeError)

    def test_devices_and_modes(self):
        service = self.open()
        for call in (
            lambda: service.supports(2**32, small.LINEAR),
            lambda: service.prepare(2**32, small.LINEAR),
            lambda: service.device_info(2**32),
        ):
            self.out_of(INT32, "device", 2**32, call)
        self.out_of(INT32, "kiln_prepare_options: mode", 2**32 + 1, lambda: service.prepare(0, small.LINEAR, 2**32 + 1))
        self.out_of(INT32, "reason", 2**32 + 1, lambda: kiln.decline_text(2**32 + 1))
        self.out_of(INT32, "ordinal", 2**32 + 1, lambda: sim.set_device(2**32 + 1))

    def test_launches(self):
        plan, nothing = self.lazy(), kiln.LinearArguments()
        self.out_of(INT64, "m", 2**64, lambda: plan.launch_pointers(None, 2**64, nothing))
        self.out_of(INT64, "m", 2**64 + 1, lambda: plan.ready(2**64 + 1))
        self.out_of(INT64, "m", 2**64 + 1, lambda: plan.kernel_name(2**64 + 1))
        self.out_of(INT64, "max_m", 2**64 + 1, lambda: plan.workspace_bytes(2**64 + 1))
        self.out_of(ADDRESS, "stream", 2**70, lambda: plan.launch_pointers(2**70, 0, nothing))
        self.out_of(ADDRESS, "stream", -1, lambda: plan.launch_pointers(-1, 0, nothing))
        self.out_of(ADDRESS, "stream: ptr", 2**64, lambda: plan.launch_pointers(type("Stream", (), {"ptr": 2**64}), 0, nothing))
        self.out_of(ADDRESS, "workspace", 2**80, lambda: plan.init_workspace(None, 2**80, 256))
        self.out_of(INT64, "size", 2**64 + 256, lambda: plan.init_workspace(None, 256, 2**64 + 256))
        self.refused("m: expected an integer, found 1.0 (float)", lambda: plan.ready(1.0), TypeError)

    def test_members_of_a_launch(self):
        self.out_of(ADDRESS, "kiln_linear_args: x", 2**80, lambda: kiln.LinearArguments(x=2**80))
        arguments = kiln.LinearArguments(x=2**64 - 1, w=None)
        self.assertEqual((arguments.x, arguments.w), (2**64 - 1, None))
        self.out_of(INT64, "kiln_linear_args: ldx", 2**63, lambda: setattr(arguments, "ldx", 2**63))
        with self.assertRaisesRegex(TypeError, "expected members among .*, found y"):
            arguments.y = 1

    def test_configurations(self):
        for value in (-1, 2**33):
            self.out_of(f"0..{2**32 - 1}", "kiln_config: workers", value, lambda: self.open(workers=value))
        self.out_of(f"0..{2**64 - 1}", "kiln_config: cache_limit_bytes", -1, lambda: self.open(cache_limit_bytes=-1))
        for value in (0, False, 4096):  # which ctypes takes for an address
            kind = type(value).__name__
            self.refused(f"kiln_config: jit: expected a string, found {value} ({kind})", lambda: self.open(jit=value), TypeError)
        self.refused(
            "kiln_config: cache_dir: expected a string, found ['a', 'b'] (list)", lambda: self.open(cache_dir=["a", "b"]), TypeError
        )
        self.assertTrue(self.open(shapes_path=pathlib.Path(self.table), jit=None).supports(0, small.LINEAR))

    def test_enumerators_of_formats(self):
        bytes_, rows = np.zeros((32, 64), np.uint8), np.zeros((1, 32), np.uint16)
        for call in (
            lambda: formats.shuffle_weights(bytes_, 2**32),
            lambda: formats.unshuffle_weights(bytes_, 2**32),
            lambda: formats.shuffle_scales(bytes_, 2**32),
            lambda: formats.unshuffle_scales(formats.shuffle_scales(bytes_), bytes_.shape, 2**32),
        ):
            self.out_of(INT32, "order", 2**32, call)
        self.out_of(INT32, "dtype", 2**32 + 4, lambda: formats.quantise_1x32(rows, 2**32 + 4))
        self.out_of(INT32, "floor", 2**32, lambda: formats.quantise_1x32(rows, kiln.Dtype.E2M1, 2**32))

    def test_integers_of_numpy_are_integers(self):
        problem = kiln.Linear(n=np.int32(64), k=np.uint16(256))
        self.assertEqual(problem, small.LINEAR)
        self.assertEqual((type(problem.n), type(problem.k)), (int, int))  # or their product would wrap
        service = self.open(workers=np.uint8(1))
        plan = service.prepare(np.int64(0), problem, kiln.PrepareMode.LAZY)
        self.assertTrue(plan.ready(np.int16(0)))
        plan.launch_pointers(np.uint64(0), np.int8(0), kiln.LinearArguments(x=np.uint64(2**63)))
        self.assertEqual(kiln.Linear(n=64, k=256, x_type=kiln.Dtype.BF16).x_type.name, "BF16")

    def test_a_nul_ends_no_string(self):
        def refused(name, value, call):
            self.refused(f"{name}: expected a string without NUL, found {value!r:.60}", call)

        folder = os.path.join(self.folder, "a\0b")
        refused("kiln_config: cache_dir", folder, lambda: self.open(cache_dir=folder))
        refused("kernel_path[1]", "a\0b", lambda: self.open(kernel_path=[self.folder, "a\0b"]))
        service = self.open()
        refused("kiln_label: value", b"a\0b", lambda: service.metrics(rank="a\0b"))
        refused("kiln_label: name", "a\0b", lambda: service.metrics(**{"a\0b": 1}))
        refused("set_log: level", "info\0junk", lambda: kiln.set_log("info\0junk"))
        refused("set_log: format", "json\0", lambda: kiln.set_log(format="json\0"))

    def test_a_path_of_a_list_is_one_path(self):
        self.refused(
            "cache_path[1]: expected a path without ':', which stands between paths, found '/a:b'",
            lambda: self.open(cache_path=["/c", "/a:b"]),
        )
        self.open(cache_path=(self.folder + "/a", pathlib.Path(self.folder, "b"), os.fsencode(self.folder) + b"/c"))
        self.refused("shapes_path[0]: expected a string, found 3 (int)", lambda: self.open(shapes_path=[3]), TypeError)

    def test_a_wait_is_of_any_length(self):
        plan = self.lazy()
        self.assertFalse(plan.wait(-math.inf))
        self.refused("seconds: expected how long to wait, found nan", lambda: plan.wait(math.nan))
        for seconds in (math.inf, 1e17, 1e300, 10**400):
            self.assertTrue(plan.wait(seconds))

    def test_who_takes_the_log(self):
        self.addCleanup(kiln.take_log, None)
        self.addCleanup(kiln.set_log, "warning")
        self.refused(
            "take_log: expected what can be called with a level and a line, or None, found 3", lambda: kiln.take_log(3), TypeError
        )
        self.refused(
            "log_to: expected a logging.Logger, found None; take_log(None) sends lines to stderr again", lambda: kiln.log_to(None), TypeError
        )
        self.refused("set_log: level: expected a string, found 3 (int)", lambda: kiln.set_log(3), TypeError)
        found = []

        def take(level, line):
            with self.assertRaises(kiln.Error) as caught:
                kiln.take_log(None)
            found.append((str(caught.exception), caught.exception.code))

        kiln.take_log(take)
        kiln.set_log("info")
        self.open().supports(0, kiln.Linear(n=80, k=256))
        text = "take_log: expected a call from outside of what takes the log, found one from within it"
        self.assertEqual(found, [(text, kiln.ErrorCode.INVALID_ARGUMENT)])

    def test_types_that_memory_of_the_simulator_does_not_have(self):
        swapped = np.dtype(np.uint16).newbyteorder()
        expected = "dtype: expected integers or floats of the host's byte order, found "
        for dtype in (swapped, np.dtype(object), np.dtype(bool), np.dtype([("a", np.int32)]), np.dtype(np.complex64)):
            self.refused(f"{expected}{dtype}", lambda: sim.array(np.zeros((2, 4), dtype)), TypeError)
            self.refused(f"{expected}{dtype}", lambda: sim.empty(4, dtype), TypeError)
        expected = "dtype: expected a type of the host's byte order with elements of bfloat16, found "
        for dtype in (swapped, np.dtype(object), np.dtype(np.uint8)):
            self.refused(f"{expected}{dtype}", lambda: sim.empty(4, dtype, sim.BFLOAT16), TypeError)
        self.refused(
            f"expected uint16 [2] for contiguous memory, found {swapped} [2]", lambda: sim.empty(2, np.uint16).write(np.zeros(2, swapped))
        )

    def test_a_number_is_an_array_without_dimensions(self):
        array = sim.array(np.float32(3))
        self.assertEqual((array.shape, array.read()), ((), np.float32(3)))


if __name__ == "__main__":
    unittest.main()
