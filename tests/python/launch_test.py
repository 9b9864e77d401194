"""The four operators launched from Python on the simulator, their results against float64."""

import unittest

import numpy as np

import kiln
import small
from kiln import formats, sim

NAN = 0xFFFF  # in bf16


class LaunchTest(small.SmallCase):
    def setUp(self):
        super().setUp()
        self.random = small.random()

    def linear(self, m):
        """A plan, the case, and the arrays of a launch."""
        plan, case = self.open().prepare(0, small.LINEAR), small.LinearCase(self.random, m)
        return plan, case, {
            "x": sim.array(case.x, sim.BFLOAT16),
            "w": sim.array(case.w),
            "w_scale": sim.array(case.w_scale),
            "out": sim.array(np.full((m, small.LINEAR.n), NAN, np.uint16), sim.BFLOAT16),
        }  # fmt: skip

    def test_linear_on_a_stream_and_in_a_graph(self):
        for m in (1, 4, 16):
            plan, case, arrays = self.linear(m)
            stream = sim.Stream()
            plan.launch(stream, **arrays)
            stream.synchronize()
            eager = arrays["out"].read()
            case.check(self, eager)
            with stream.capture() as graph:
                plan.launch(stream, **arrays)
            arrays["out"].write(np.full_like(eager, NAN))
            for _ in range(2):
                graph.replay(stream)
            stream.synchronize()
            np.testing.assert_array_equal(arrays["out"].read(), eager)

    def test_linear_by_addresses(self):
        plan, case, arrays = self.linear(3)
        arguments = kiln.LinearArguments(ldx=small.LINEAR.k, **{name: array.ptr for name, array in arrays.items()})
        stream = sim.Stream()
        plan.launch_pointers(stream.ptr, 3, arguments)
        stream.synchronize()
        case.check(self, arrays["out"].read())
        m, checked = plan.arguments(**arrays)
        self.assertEqual(m, 3)
        for name, _ in checked._fields_:
            self.assertEqual(getattr(checked, name), getattr(arguments, name), name)

    def test_linear_takes_rows_that_lie_apart(self):
        plan, case, arrays = self.linear(4)
        wide = sim.array(np.concatenate([case.x, np.full_like(case.x, NAN)], axis=1))
        arrays["x"] = wide[:, : small.LINEAR.k]
        self.assertEqual(plan.arguments(**arrays)[1].ldx, 2 * small.LINEAR.k)
        plan.launch(None, **arrays)
        case.check(self, arrays["out"].read())

    def test_no_tokens_are_done_at_once(self):
        plan, _, arrays = self.linear(4)
        plan.launch(None, **(arrays | {"x": arrays["x"][:0], "out": arrays["out"][:0]}))
        self.assertTrue((arrays["out"].read() == NAN).all())

    def test_what_a_launch_declines_is_raised(self):
        plan, case, arrays = self.linear(4)
        with self.assertRaises(kiln.Declined) as caught:
            plan.launch_pointers(None, 17, plan.arguments(**arrays)[1])
        self.assertEqual(caught.exception.reason, kiln.Decline.M_TOO_LARGE)
        self.assertEqual(str(caught.exception), kiln.decline_text(kiln.Decline.M_TOO_LARGE))
        with self.assertRaises(kiln.Declined) as caught:
            plan.launch_pointers(None, 1, kiln.LinearArguments(x=8, ldx=256, w=16, w_scale=4, out=16))
        self.assertEqual(caught.exception.reason, kiln.Decline.X_ALIGNMENT)
        sim.set_device(1)
        self.addCleanup(sim.set_device, 0)
        with self.assertRaises(kiln.Declined) as caught:
            plan.launch(None, **arrays)
        self.assertEqual(caught.exception.reason, kiln.Decline.OTHER_DEVICE)

    def test_a_broken_rule_of_a_kernel_is_an_error_of_the_simulator(self):
        plan, _, arrays = self.linear(4)
        arrays["x"] = sim.empty(arrays["x"].shape, np.uint16)  # which nobody wrote
        plan.launch(None, **arrays)
        with self.assertRaisesRegex(sim.SimulatorError, "nobody|never|written"):
            sim.synchronize()
        self.assertEqual(sim._hip.hipDeviceReset(), 0)

    def test_router(self):
        problem, m = small.ROUTER, 3
        plan = self.open().prepare(0, problem)
        x, gate = small.normal(self.random, m, problem.hidden), small.normal(self.random, problem.experts, problem.hidden)
        shared_gate = formats.to_bf16(self.random.standard_normal(problem.hidden).astype(np.float32) / 16)
        size = plan.workspace_bytes(m)
        self.assertGreater(size, 0)
        workspace = sim.empty(size, np.uint8)
        plan.init_workspace(None, workspace)
        ids, weights = sim.empty((m, problem.columns), np.int32), sim.empty((m, problem.columns), np.float32)
        plan.launch(
            None, x=sim.array(x), gate=sim.array(gate), shared_gate=sim.array(shared_gate), ids=ids, weights=weights, scale=0.5,
            workspace=workspace,
        )  # fmt: skip
        tokens = formats.from_bf16(x).astype(np.float64)
        logits = tokens @ formats.from_bf16(gate).astype(np.float64).T
        rounded = formats.from_bf16(formats.to_bf16(logits)).astype(np.float64)
        chosen = np.argsort(-rounded, axis=1, kind="stable")[:, : problem.top_k]
        np.testing.assert_array_equal(ids.read(), np.concatenate([chosen, np.full((m, 1), problem.experts)], axis=1))
        p = np.exp(np.take_along_axis(rounded, chosen, axis=1) - rounded.max(axis=1, keepdims=True))
        shared = 0.5 / (1 + np.exp(-tokens @ formats.from_bf16(shared_gate).astype(np.float64)))
        expected = np.concatenate([p / p.sum(axis=1, keepdims=True), shared[:, None]], axis=1)
        np.testing.assert_allclose(weights.read(), expected, atol=1e-5)

    def test_a_workspace_may_be_an_address_and_must_be_large_enough(self):
        problem = small.ROUTER
        plan = self.open().prepare(0, problem)
        size = plan.workspace_bytes(4)
        workspace = sim.empty(size, np.uint8)
        plan.init_workspace(None, workspace.ptr, size)
        arrays = {
            "x": sim.array(small.normal(self.random, 4, problem.hidden)),
            "gate": sim.array(small.normal(self.random, problem.experts, problem.hidden)),
            "shared_gate": sim.array(small.normal(self.random, problem.hidden)),
            "ids": sim.empty((4, problem.columns), np.int32),
            "weights": sim.empty((4, problem.columns), np.float32),
        }
        with self.assertRaisesRegex(kiln.ArrayError, f"router: workspace: expected at least {size} bytes, found {size - 1}"):
            plan.launch(None, **arrays, workspace=workspace[: size - 1])
        with self.assertRaisesRegex(TypeError, "workspace: expected an array"):
            plan.launch(None, **arrays, workspace=None)
        stream = sim.Stream()
        with stream.capture(), self.assertRaises(kiln.Declined) as caught:
            plan.init_workspace(stream, workspace)
        self.assertEqual(caught.exception.reason, kiln.Decline.CAPTURE)

    def test_moe_sort(self):
        problem, m = small.SORT, 5
        plan = self.open().prepare(0, problem)
        ids = self.random.integers(0, problem.experts, (m, problem.slots)).astype(np.int32)
        x, weights = small.normal(self.random, m, problem.hidden), self.random.random((m, problem.slots), dtype=np.float32)
        arrays = {
            "ids": sim.array(ids),
            "weights": sim.array(weights),
            "x": sim.array(x),
            "sorted_ids": sim.empty(problem.rows(m), np.int32),
            "sorted_weights": sim.empty(problem.rows(m), np.float32),
            "sorted_expert_ids": sim.empty(problem.blocks(m), np.int32),
            "num_valid": sim.empty(2, np.int32),
            "moe_buf": sim.empty((m, problem.hidden), np.uint16),
            "q": sim.empty((m, problem.hidden), np.uint8),
            "q_scale": sim.empty(problem.scale_bytes(m), np.uint8),
        }
        size = plan.workspace_bytes(m)
        workspace = sim.empty(size, np.uint8) if size else None
        plan.init_workspace(None, workspace)
        plan.launch(None, **arrays, workspace=workspace)

        rows, experts, row_weights = [], [], []
        for expert in range(problem.experts):
            pairs = [(slot << 24) | token for token in range(m) for slot in range(problem.slots) if ids[token, slot] == expert]
            padding = -len(pairs) % problem.block_m
            experts += [expert] * ((len(pairs) + padding) // problem.block_m)
            row_weights += [weights[pair & 0xFFFFFF, pair >> 24] for pair in pairs] + [0] * padding
            rows += pairs + [(problem.slots << 24) | m] * padding
        np.testing.assert_array_equal(arrays["num_valid"].read(), [len(rows), m])
        np.testing.assert_array_equal(arrays["sorted_ids"].read()[: len(rows)], rows)
        np.testing.assert_array_equal(arrays["sorted_weights"].read()[: len(rows)], np.array(row_weights, np.float32))
        np.testing.assert_array_equal(arrays["sorted_expert_ids"].read()[: len(experts)], experts)
        self.assertFalse(arrays["moe_buf"].read().any())
        np.testing.assert_array_equal(arrays["q"].read(), formats.quantise_1x32(x, kiln.Dtype.E4M3FN)[0])

    def test_sizes_of_a_sort_that_is_none_are_an_error(self):
        with self.assertRaises(kiln.Error) as caught:
            small.SORT.rows(2**24)
        self.assertEqual(caught.exception.code, kiln.ErrorCode.INVALID_ARGUMENT)
        plain = kiln.MoeSort(experts=8, slots=2, block_m=16)
        self.assertEqual((plain.rows(5), plain.scale_bytes(5)), (5 * 2 + 8 * 16 - 2, 0))

    def test_fused_moe(self):
        problem, m = small.EXPERTS, 3
        plan = self.open().prepare(0, problem)
        w13, w13_scale, dense13 = self.mxfp4(problem.experts, 2 * problem.intermediate, problem.hidden)
        w2, w2_scale, dense2 = self.mxfp4(problem.experts, problem.hidden, problem.intermediate)
        x = small.normal(self.random, m, problem.hidden)
        ids = np.array([[0, 3], [2, -1], [1, problem.experts]], np.int32)
        weights = self.random.random((m, problem.slots), dtype=np.float32)
        size = plan.workspace_bytes(m)
        workspace = sim.empty(size, np.uint8)
        plan.init_workspace(None, workspace)
        out, invalid = sim.empty((m, problem.hidden), np.uint16), sim.array(np.zeros(1, np.int32))
        plan.launch(
            None, x=sim.array(x), w13=sim.array(w13), w13_scale=sim.array(w13_scale), w2=sim.array(w2), w2_scale=sim.array(w2_scale),
            ids=sim.array(ids), weights=sim.array(weights), out=out, invalid_id=invalid, workspace=workspace,
        )  # fmt: skip
        expected = np.zeros((m, problem.hidden))
        for token in range(m):
            for slot, expert in enumerate(ids[token]):
                if 0 <= expert < problem.experts:
                    gate, up = np.split(dense13[expert] @ formats.from_bf16(x[token]).astype(np.float64), 2)
                    h = formats.from_bf16(formats.to_bf16(gate / (1 + np.exp(-gate)) * up)).astype(np.float64)
                    expected[token] += weights[token, slot] * (dense2[expert] @ h)
        found = formats.from_bf16(out.read()).astype(np.float64)
        expected = formats.from_bf16(formats.to_bf16(expected)).astype(np.float64)
        self.assertLess(np.linalg.norm(found - expected) / np.linalg.norm(expected), 5e-4)
        self.assertEqual(invalid.read()[0], 1)

    def mxfp4(self, experts, rows, k):
        """Weights as a launch takes them, and what they are worth."""
        w = formats.to_bf16(self.random.standard_normal((experts * rows, k), dtype=np.float32) / 8)
        codes, scales = formats.quantise_1x32(w, kiln.Dtype.E2M1)
        dense = small.times_scales(small.e2m1(codes), 2.0 ** (scales.astype(float) - 127), 1, 32)
        shuffled = formats.shuffle_weights(codes.reshape(experts, rows, k // 2))
        return shuffled, formats.shuffle_scales(scales.reshape(experts, rows, k // 32)), dense.reshape(experts, rows, k)


if __name__ == "__main__":
    unittest.main()
