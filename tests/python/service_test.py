"""Services, problems, plans: answers, declines and errors as Python's own."""

import ctypes
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import unittest

import numpy as np

import kiln
import small
from kiln import sim
from kiln._plans import PLANS


class ServiceTest(small.SmallCase):
    def test_the_devices_are_the_simulators(self):
        service = self.open()
        self.assertEqual(service.device_count(), 2)
        info = service.device_info(1)
        self.assertTrue(info.simulated)
        self.assertTrue(info.target.startswith("gfx950"))
        with self.assertRaises(kiln.Error) as caught:
            service.device_info(2)
        self.assertEqual(caught.exception.code, kiln.ErrorCode.NOT_FOUND)

    def test_an_answer_says_why_not(self):
        service = self.open()
        self.assertTrue(service.supports(0, small.LINEAR))
        self.assertIsNone(service.supports(kiln.NO_DEVICE, small.LINEAR).reason)
        answer = service.supports(0, kiln.Linear(n=72, k=256))
        self.assertFalse(answer)
        self.assertEqual(answer.reason, kiln.Decline.DIMENSIONS)
        self.assertIn("n=72", answer.message)
        self.assertFalse(service.supports(0, kiln.Router(hidden=256, experts=32, top_k=3, simulated=True)))
        with self.assertRaises(kiln.Declined) as caught:
            service.prepare(0, kiln.Linear(n=80, k=256))
        self.assertEqual(caught.exception.reason, kiln.Decline.SHAPE)
        self.assertIn("80", str(caught.exception))
        self.assertEqual(service.statistics().declines, 3)

    def test_every_reason_has_a_text(self):
        texts = {kiln.decline_text(reason) for reason in kiln.Decline}
        self.assertEqual(len(texts), len(kiln.Decline))
        self.assertNotIn(kiln.decline_text(9999), texts)

    def test_every_member_of_a_problem_reaches_kiln(self):
        for problem in PLANS:
            members = [name for name, _ in problem._struct._fields_ if name not in ("struct_size", "reserved")]
            given = {name: number for number, name in enumerate(members, start=3)}
            made = problem(**given)._c()
            self.assertEqual({name: getattr(made, name) for name in members}, given)
            self.assertEqual(made.struct_size, ctypes.sizeof(problem._struct))

    def test_a_wrong_configuration_is_an_error_that_names_the_place(self):
        with self.assertRaises(kiln.Error) as caught:
            self.open(device="moon")
        self.assertEqual((caught.exception.code, caught.exception.stage), (kiln.ErrorCode.BAD_INPUT, kiln.Stage.CONFIGURE))
        self.assertIn("moon", str(caught.exception))
        with self.assertRaisesRegex(TypeError, "cache_folder"):
            self.open(cache_folder="x")
        with self.assertRaisesRegex(TypeError, "n: expected an integer"):
            self.open().supports(0, kiln.Linear(n=64.0, k=256))
        with self.assertRaisesRegex(TypeError, "expected a problem"):
            self.open().prepare(0, "linear")

    def test_paths_may_be_lists(self):
        other = os.path.join(self.folder, "other.json")
        with open(other, "w", encoding="utf-8") as file:
            file.write('{"schema": 1, "rows": []}')
        self.assertTrue(self.open(shapes_path=[other, self.table]).supports(0, small.LINEAR))

    def test_a_miss_without_a_compiler_is_an_error(self):
        with self.assertRaises(kiln.Error) as caught:
            self.open(jit="off").prepare(0, small.LINEAR)
        self.assertEqual(caught.exception.code, kiln.ErrorCode.ENVIRONMENT)
        self.assertIn("KILN_JIT", str(caught.exception))

    def test_a_closed_service_or_plan_answers_and_lives_on_in_plans(self):
        service = self.open()
        with service.prepare(0, small.LINEAR) as plan:
            service.close()
            service.close()
            with self.assertRaises(kiln.Error) as caught:
                service.statistics()
            self.assertEqual(caught.exception.code, kiln.ErrorCode.INVALID_ARGUMENT)
            with self.assertRaises(kiln.Error):
                service.prepare(0, small.LINEAR)
            plan.launch_pointers(None, 0, kiln.LinearArguments())
        with self.assertRaises(kiln.Error):
            plan.launch_pointers(None, 0, kiln.LinearArguments())

    def test_modes_say_when_kernels_are_obtained(self):
        service = self.open()
        lazy = service.prepare(0, small.LINEAR, kiln.PrepareMode.LAZY)
        self.assertEqual(lazy.ready(4).reason, kiln.Decline.COMPILING)
        self.assertTrue(lazy.ready(0))
        self.assertEqual(lazy.ready(17).reason, kiln.Decline.M_TOO_LARGE)
        self.assertFalse(lazy.wait(0))
        self.assertEqual(service.statistics().compiles, 0)
        self.assertTrue(lazy.wait())
        self.assertTrue(lazy.ready(16))
        counted = service.statistics()
        self.assertEqual((counted.compiles, counted.loads), (2, 2))
        background = service.prepare(0, small.LINEAR, mode=kiln.PrepareMode.BACKGROUND)
        self.assertTrue(background.wait(600))
        self.assertEqual(service.statistics().compiles, 2)

    def test_a_plan_says_what_it_covers(self):
        plan = self.open().prepare(1, small.LINEAR)
        self.assertEqual((plan.device, plan.max_m, plan.problem), (1, 16, small.LINEAR))
        self.assertEqual(plan.kernel_name(3), "kiln_linear_n64_k256_m4")
        self.assertIsNone(plan.kernel_name(17))
        self.assertEqual(plan.workspace_bytes(16), 0)

    def test_a_bucket_that_can_not_be_had_is_an_error(self):
        service = self.open(worker=os.path.join(self.folder, "none"))
        plan = service.prepare(0, small.LINEAR, kiln.PrepareMode.LAZY)
        with self.assertRaises(kiln.Error) as caught:
            plan.wait()
        self.assertEqual(caught.exception.code, kiln.ErrorCode.ENVIRONMENT)
        self.assertIn("none", str(caught.exception))

    def test_an_edited_table_is_taken_whole_or_not_at_all(self):
        service = self.open()
        other = kiln.Linear(n=128, k=256)
        self.assertFalse(service.supports(0, other))
        self.write_table([*small.ROWS, small.linear_row(n=128)])
        service.reload()
        self.assertTrue(service.supports(0, other))
        self.write_table([small.linear_row(waves=3), {"operator": "linear"}])
        with self.assertRaises(kiln.Error) as caught:
            service.reload()
        self.assertEqual(caught.exception.stage, kiln.Stage.TABLE)
        self.assertGreaterEqual(str(caught.exception).count(self.table), 2)
        self.assertTrue(service.supports(0, other))
        self.assertEqual(service.statistics().reloads, 1)

    def test_threads_share_a_service_and_a_plan(self):
        service = self.open()
        case = small.LinearCase(small.random(), 4)
        results = []

        def work():
            plan = service.prepare(0, small.LINEAR)
            out = sim.empty((4, small.LINEAR.n), np.uint16)
            stream = sim.Stream()
            plan.launch(stream, x=sim.array(case.x), w=sim.array(case.w), w_scale=sim.array(case.w_scale), out=out)
            stream.synchronize()
            results.append(out.read())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for out in results:
            case.check(self, out)
        self.assertEqual(service.statistics().compiles, 2)

    def test_metrics_have_the_labels(self):
        page = self.open().metrics(rank=3, model="qwen")
        samples = [line for line in page.splitlines() if line and not line.startswith("#")]
        self.assertTrue(samples)
        for sample in samples:
            self.assertIn('rank="3"', sample)
            self.assertIn('model="qwen"', sample)
        with self.assertRaises(kiln.Error) as caught:
            self.open().metrics(**{"not-a-name": 1})
        self.assertEqual(caught.exception.code, kiln.ErrorCode.INVALID_ARGUMENT)

    def test_the_log_can_be_taken_and_set(self):
        self.addCleanup(kiln.take_log, None)
        self.addCleanup(kiln.set_log, "warning", "text")
        lines = []
        kiln.take_log(lambda level, line: lines.append((level, line)))
        kiln.set_log("info", "json")
        self.open().prepare(0, small.LINEAR)
        compiled = [json.loads(line) for level, line in lines if level == kiln.LogLevel.INFO and '"compile"' in line]
        self.assertEqual({line["kernel"] for line in compiled}, {"kiln_linear_n64_k256_m4", "kiln_linear_n64_k256_m16"})
        kiln.set_log(format="text")
        with self.assertLogs("engine", "INFO") as logged:
            kiln.log_to(logging.getLogger("engine"))
            self.open(cache_dir=os.path.join(self.folder, "another")).prepare(0, small.LINEAR)
        self.assertTrue(any("kiln_linear_n64_k256_m4" in line for line in logged.output))
        kiln.set_log("off")
        count = len(lines)
        self.open().prepare(0, small.LINEAR)
        self.assertEqual(len(lines), count)
        with self.assertRaises(kiln.Error) as caught:
            kiln.set_log("loud")
        self.assertIn("loud", str(caught.exception))

    def test_a_process_ends_well_with_its_log_taken(self):
        done = self.run_python(
            "import kiln; kiln.take_log(lambda level, line: print(line)); service = kiln.Service(log='debug');"
            "service.prepare(0, kiln.Linear(n=64, k=256), kiln.PrepareMode.BACKGROUND)",
            KILN_SHAPES_PATH=self.table,
        )
        self.assertEqual(done.returncode, 0)
        # What kiln says of a compile that the end cut short comes when the log is given back.
        self.assertEqual([line for line in done.stderr.splitlines() if not line.startswith("kiln: debug: ")], [])

    def test_a_process_ends_well_while_a_thread_prepares(self):
        done = self.run_python(
            "import kiln, threading\n"
            "service, begun = kiln.Service(), threading.Event()\n"
            "def work():\n"
            "    begun.set()\n"
            "    service.prepare(0, kiln.Linear(n=64, k=256))\n"
            "threading.Thread(target=work, daemon=True).start()\n"
            "begun.wait()",
            KILN_SHAPES_PATH=self.table,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_process_ends_well_while_a_thread_launches(self):
        done = self.run_python(
            "import kiln, numpy as np, threading\n"
            "from kiln import sim\n"
            "plan, begun = kiln.Service().prepare(0, kiln.Linear(n=64, k=256)), threading.Event()\n"
            "def work():\n"
            "    stream = sim.Stream()\n"
            "    x, out = sim.array(np.zeros((4, 256), np.uint16)), sim.empty((4, 64), np.uint16)\n"
            "    w, w_scale = sim.array(np.zeros((64, 256), np.uint8)), sim.array(np.ones((1, 2), np.float32))\n"
            "    while True:\n"
            "        plan.launch(stream, x=x, w=w, w_scale=w_scale, out=out)\n"
            "        begun.set()\n"
            "threading.Thread(target=work, daemon=True).start()\n"
            "begun.wait()",
            KILN_SHAPES_PATH=self.table,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_no_finalizer_runs_at_the_interpreters_end(self):
        done = self.run_python(
            "import atexit, kiln, weakref\n"
            "from kiln import sim\n"
            "service, stream, memory = kiln.Service(), sim.Stream(), sim.empty(4, 'u1')\n"
            "plan = service.prepare(0, kiln.Linear(n=64, k=256), kiln.PrepareMode.LAZY)\n"
            "with stream.capture() as graph: pass\n"
            "kept = (service, plan, stream, memory._memory, graph)\n"
            "found = [one for one in weakref.finalize._registry if one.peek()[0] in kept]\n"
            "print(len(found), any(one.atexit for one in found))",
            KILN_SHAPES_PATH=self.table,
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "5 False\n", ""))

    def test_a_log_that_is_taken_is_given_back_before_the_interpreter_ends(self):
        done = self.run_python(
            "import atexit, kiln\n"
            "def ask(): kiln.Service(log='info').supports(kiln.NO_DEVICE, kiln.Linear(n=80, k=256))\n"
            "atexit.register(ask)\n"  # so it runs after what is registered from here on
            "kiln.take_log(lambda level, line: print('taken', line))\n"
            "ask()"
        )
        self.assertEqual((done.stdout.count("taken decline "), done.stderr.count("kiln: info: decline ")), (1, 1), done)

    def run_python(self, program, **environment):
        environment = os.environ | {"KILN_CACHE_DIR": os.path.join(self.folder, "cache"), "KILN_DEVICE": "sim"} | environment
        return subprocess.run([sys.executable, "-B", "-c", program], env=environment, capture_output=True, text=True)

    def test_importing_it_wants_nothing_but_python(self):
        done = self.run_python("import sys, kiln; print(sorted({'numpy', 'torch'} & set(sys.modules)), kiln.library_version())")
        self.assertEqual((done.stdout.strip(), done.stderr), (f"[] {kiln.__version__}", ""))

    def test_a_library_that_is_none_is_an_import_error(self):
        for path in (os.path.join(self.folder, "libkiln.so"), sim._hip._name):
            done = self.run_python("import kiln", KILN_LIBRARY=path)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"ImportError: expected libkiln {kiln.__version__[:3]} at {path}, found: ", done.stderr)

    def test_a_libkiln_without_the_simulator_says_so(self):
        library = shutil.copy(kiln.library_path, self.folder)
        done = self.run_python("import kiln; print(kiln.library_path); from kiln import sim", KILN_LIBRARY=library)
        self.assertEqual(done.stdout.strip(), library)
        self.assertIn(f"ImportError: expected the simulator beside libkiln, at {self.folder}/kiln/sim/", done.stderr)

    def test_a_process_ends_well_with_everything_open(self):
        done = self.run_python(
            "import kiln; service = kiln.Service(jit='off'); print(service.device_count()); keep = [service]; keep.append(keep)"
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "2\n", ""))


if __name__ == "__main__":
    unittest.main()
