"""gpu_test.py PATH_OF_TOOLS_BENCH_GPU"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

GPU = sys.argv.pop(1)
sys.path.insert(0, GPU + ".d")

import figures  # noqa: E402
import sides  # noqa: E402

DOUBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "side_double.py")


def row(n, k, target="sm_90a"):
    return {"operator": "linear", "problem": {"n": n, "k": k}, "target": target, "buckets": []}


class GpuTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kiln-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "stage", "bin"))
        os.symlink(DOUBLE, os.path.join(self.folder, "stage", "bin", "bench_gpu"))

    def run_gpu(self, *options, rows=(row(512, 256), row(1024, 512), row(64, 128, "gfx950")), start=None, **behaviour):
        table = os.path.join(self.folder, "table.json")
        with open(table, "w", encoding="utf-8") as file:
            json.dump({"rows": list(rows)}, file)
        self.out = os.path.join(self.folder, "out")
        command = [sys.executable, "-B", GPU, "--stage", os.path.join(self.folder, "stage"), "--table", table,
                   "--peers", "none", "--out", self.out, *options]
        settings = {"env": {**os.environ, "SIDE_DOUBLE": json.dumps(behaviour)}, "text": True,
                    "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return (start or subprocess.run)(command, **settings)

    def result(self):
        with open(os.path.join(self.out, "gpu.json"), encoding="utf-8") as file:
            return json.load(file)

    def report(self):
        with open(os.path.join(self.out, "gpu.md"), encoding="utf-8") as file:
            return file.read()

    def goal(self, beginning):
        return next(goal for goal in self.result()["goals"] if goal["goal"].startswith(beginning))

    def test_every_row_for_cuda_at_every_m_is_a_case(self):
        done = self.run_gpu()
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = [(case["n"], case["k"], case["m"]) for case in self.result()["cases"]]
        self.assertEqual(cases, [(n, k, m) for n, k in ((512, 256), (1024, 512)) for m in (1, 2, 4, 8, 16, 24, 32)])
        self.assertEqual(done.stdout.strip(), self.report().strip())

    def test_median_and_spread_are_those_of_the_samples(self):
        self.run_gpu("--quick", kiln=5.0, read=4.5)
        kiln = self.result()["cases"][0]["kiln"]
        self.assertAlmostEqual(kiln["median"], 5.0)
        self.assertAlmostEqual(kiln["spread"], 0.1)  # of 4.95, 5, 5.05 three times
        self.assertEqual(kiln["samples"], 9)
        self.assertIn("| 8 | 5.00 ± 0.10 | 4.50 ± 0.09 | 0.900 |", self.report())

    def test_a_launch_is_compared_in_pairs(self):
        self.run_gpu("--quick", bare=2000.0, plan=2010.0)
        launch = self.result()["service"]["launch"]
        self.assertEqual((launch["more_ns"]["median"], launch["more_ns"]["spread"]), (10.0, 0.0))
        self.assertIn("the median, at 95%: 10 to 10", self.report())

    def test_the_interval_of_a_median_is_that_of_its_ranks(self):
        # Of 101 samples the ranks 41 to 61, by the tables of the sign test.
        self.assertEqual(figures.median_interval(list(range(1, 102))), [41, 61])
        self.assertEqual(figures.median_interval([5.0]), [5.0, 5.0])

    def test_goals_are_met_at_the_bound_and_missed_below_it(self):
        self.run_gpu("--no-service", kiln=5.0, read=4.25)
        self.assertTrue(self.goal("0.85 ")["met"])
        self.run_gpu("--no-service", kiln=5.0, read=4.2)
        self.assertFalse(self.goal("0.85 ")["met"])
        self.assertTrue(self.goal("0.75 ")["met"])
        self.run_gpu("--no-service", kiln=5.0, read=3.7)
        self.assertEqual(len(self.goal("0.75 ")["misses"]), 6)

    def test_a_launch_must_be_within_both_bounds(self):
        for plan, met in ((2039.0, True), (2041.0, False)):
            self.run_gpu("--quick", bare=2000.0, plan=plan)
            self.assertEqual(self.goal("a launch")["met"], met, plan)
        self.run_gpu("--quick", bare=4000.0, plan=4051.0)
        self.assertFalse(self.goal("a launch")["met"])

    def test_service_is_cold_once_and_warm_after(self):
        self.run_gpu("--quick")
        service = self.result()["service"]
        self.assertEqual(service["first_use"]["cold"]["total_ms"]["median"], 1000.0)
        self.assertEqual(service["first_use"]["warm"]["total_ms"]["median"], 6.0)
        self.assertEqual(service["prepare"]["compiled"], 4)
        self.assertEqual(service["prepare"]["warm"]["total_ms"]["samples"], 3)

    def test_a_case_that_fails_is_reported_and_the_others_are_measured(self):
        done = self.run_gpu("--no-service", refuse=["case 8", "problem 512 256 32"])
        self.assertEqual(done.returncode, 1)
        failed = [case for case in self.result()["cases"] if "failure" in case]
        self.assertEqual([case["m"] for case in failed], [0, 8])
        self.assertEqual(failed[0]["failure"], "refused on purpose")
        self.assertEqual(len(self.result()["cases"]), 8)
        self.assertIn("refused on purpose", done.stdout)

    def test_a_side_that_dies_is_started_again(self):
        done = self.run_gpu("--no-service", "--problem", "512x256", "--m", "1,2", end_at="case")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([case["failure"] for case in self.result()["cases"]], ["bench_gpu ended with status 9"] * 2)

    def test_what_is_measured_is_written_after_each_problem(self):
        # The second problem never ends: the run is ended from outside, once the first is there or is long overdue.
        started = []
        deadline = time.monotonic() + 120

        def end_when_written(*command, **options):
            started.append(subprocess.Popen(*command, **options))
            written = os.path.join(self.out, "gpu.md")
            while time.monotonic() < deadline and not (os.path.exists(written) and os.path.getsize(written) > 0):
                time.sleep(0.01)
            started[0].kill()
            started[0].communicate()

        self.run_gpu("--no-service", "--m", "8", start=end_when_written, hang_at="problem 1024 512 8")
        self.assertEqual([(case["n"], case["m"]) for case in self.result()["cases"]], [(512, 8)])
        self.assertIn("### 512 x 256", self.report())

    def test_after_the_limit_no_case_begins_and_that_is_said(self):
        done = self.run_gpu("--no-service", "--limit", "0")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(self.result()["left_out"]), 2)

    def test_what_can_not_be_run_is_said_by_name(self):
        done = self.run_gpu(rows=[row(512, 256, "gfx950")])
        self.assertIn("expected rows of linear for a CUDA processor", done.stderr)
        self.assertEqual(done.returncode, 2)
        done = self.run_gpu("--stage", self.folder)
        self.assertIn("expected bin/bench_gpu", done.stderr)
        self.assertEqual(done.returncode, 3)
        for option, value, expected in (("--table", "/nowhere", "expected a shape table"), ("--problem", "16", "expected NxK"),
                                        ("--peer-problem", "16xa", "expected NxK"), ("--m", "0", "expected whole numbers")):
            done = self.run_gpu(option, value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(expected, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_a_run_that_can_not_begin_leaves_nothing_behind(self):
        done = self.run_gpu(refuse=["device"], refusal="{KILN_CACHE_DIR}")
        self.assertEqual(done.returncode, 3)
        scratch = os.path.dirname(done.stderr.strip().removeprefix("gpu: "))
        self.assertIn("kiln-bench-", scratch)
        self.assertFalse(os.path.exists(scratch), scratch)


class PeerSideTest(unittest.TestCase):
    """A peer that breaks its process takes no other with it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-test-")
        self.addCleanup(scratch.cleanup)
        self.notes = os.path.join(scratch.name, "notes")
        os.environ["PEERS_DOUBLE"] = self.notes
        self.folder = os.path.dirname(DOUBLE)

    def side(self, *wanted):
        side = sides.PeerSide(os.path.join(self.folder, "peers_double.py"), "/folder", True, list(wanted))
        side.begin_problem(512, 256)
        side.begin_case(8)
        return side

    def lines(self):
        with open(self.notes, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_the_others_go_on_in_a_new_process_where_they_were(self):
        side = self.side("faults", "good", "wrong")
        made = side.make()
        self.assertEqual(set(made), {"faults at launch", "good"})
        measured, failures = figures.interleaved({name: side.contender(name) for name in made}, 2, 3)
        self.assertEqual(set(measured), {"good"})
        self.assertEqual(measured["good"]["samples"], 6)
        self.assertEqual(failures, {"faults at launch": "illegal memory access"})
        self.assertEqual(self.lines().count("started"), 3)
        self.assertEqual(self.lines().count("problem 512 256"), 3)
        side.begin_case(16)
        self.assertEqual(set(side.make()), {"good"})  # who broke a process is not asked again, who was wrong is
        self.assertEqual(self.lines().count("make faults when made"), 1)
        self.assertEqual(self.lines().count("make wrong"), 2)
        side.close()
        self.assertEqual(len(side.left_out), 4)
        self.assertIn("faults when made, 512 x 256, M = 8: illegal memory access", side.left_out)

    def test_a_process_that_dies_is_no_different(self):
        side = self.side("dies", "good")
        self.assertEqual(set(side.make()), {"good"})
        self.assertEqual(side.measure("good", 2), [10.0, 10.0])
        self.assertIn("dies, 512 x 256, M = 8: peers_double.py ended with status 7", side.left_out)
        side.close()

    def test_after_too_many_starts_the_peers_are_gone(self):
        side = self.side("dies")
        for _ in range(3):
            side._names = ["dies"]
            side.make()
        side._names = ["dies"]
        with self.assertRaises(sides.PeersGone):
            side.make()
        with self.assertRaises(sides.Refused):
            side.begin_problem(1, 1)


if __name__ == "__main__":
    unittest.main()
