"""side_test.py PATH_OF_TOOLS_BENCH_GPU BUILD_FOLDER: the real bench_gpu over a driver that does nothing (KILN_CUDA_LIBRARY)."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

GPU, BUILD = sys.argv[1:3]
del sys.argv[1:3]
SIDE = os.path.join(BUILD, "bin", "bench_gpu")
N, K = 4096, 1024  # the smallest row that is shipped


def nvrtc_is_there():
    for name in ("/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


class SideTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def environment(self, **more):
        return os.environ | {"KILN_CACHE_DIR": os.path.join(self.folder, "cache"), "XDG_CONFIG_HOME": self.folder} | more

    def session(self, *lines, **more):
        done = subprocess.run([SIDE], input="\n".join(lines) + "\n", env=self.environment(**more), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_session_measures_a_case_and_stays_after_what_it_can_not_do(self):
        with open(os.path.join(self.folder, "w"), "wb") as file:
            file.write(os.urandom(N * K))
        with open(os.path.join(self.folder, "w_scale"), "wb") as file:
            file.write(bytes(N // 128 * K // 128 * 4))
        with open(os.path.join(self.folder, "x"), "wb") as file:
            file.write(bytes(8 * K * 2))
        answers = self.session(
            "round kiln 1", f"problem {N} {K} 32 {self.folder}", f"case 8 {self.folder}", "round kiln 3", "round read 2",
            "round peer 1", "case 33", "nonsense", "launch 3", KILN_DOUBLE_MS="3",
        )
        self.assertIn("expected a case", answers[0]["error"])
        self.assertEqual(answers[1], {"copies": 2})
        case = answers[2]
        self.assertEqual(case["bytes"], N * K + N // 128 * K // 128 * 4 + 8 * 2 * (N + K))
        self.assertEqual(case["kernel"], f"kiln_linear_n{N}_k{K}_m8")
        self.assertEqual(case["launches"] % 2, 0)
        for answer, samples in ((answers[3], 3), (answers[4], 2)):
            self.assertEqual(len(answer["us"]), samples)
            self.assertAlmostEqual(answer["us"][0], 3000 / case["launches"], places=3)
        for answer in answers[5:8]:
            self.assertIn("error", answer)
        # After a case that was refused there is none to launch.
        self.assertIn("error", answers[8])
        with open(os.path.join(self.folder, "out"), "rb") as file:
            self.assertEqual(file.read(), b"\xff" * (8 * N * 2))  # poison: nothing ran

    def test_a_file_of_another_size_is_refused_by_name(self):
        with open(os.path.join(self.folder, "w"), "wb") as file:
            file.write(bytes(N * K + 1))
        answer = self.session(f"problem {N} {K} 32 {self.folder}")[0]
        self.assertIn(f"expected {N * K} bytes in {self.folder}/w", answer["error"])

    def test_a_problem_that_no_table_has_is_an_answer_with_kilns_reason(self):
        self.assertIn("no row", self.session("problem 48 128 1")[0]["error"])

    def test_the_whole_run_over_the_double(self):
        table = os.path.join(self.folder, "table.json")
        with open(os.path.join(os.path.dirname(GPU), "..", "..", "shapes", "linear.json"), encoding="utf-8") as file:
            shipped = json.load(file)
        rows = [row for row in shipped["rows"] if row["problem"] == {"n": N, "k": K} and row["target"] == "sm_90a"]
        with open(table, "w", encoding="utf-8") as file:
            json.dump({"schema": shipped["schema"], "rows": rows}, file)
        out = os.path.join(self.folder, "out")
        done = subprocess.run(
            [sys.executable, "-B", GPU, "--quick", "--stage", BUILD, "--table", table, "--peers", "none", "--out", out],
            env=self.environment(), capture_output=True, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "gpu.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual([case["m"] for case in result["cases"]], [1, 8, 32])
        self.assertEqual(result["left_out"], [])
        self.assertEqual(set(result["service"]), {"launch", "first_use", "prepare"})
        self.assertEqual(result["service"]["prepare"]["code_objects"], len(rows[0]["buckets"]))


if __name__ == "__main__":
    if not nvrtc_is_there():
        print("skipped: no CUDA toolkit (libnvrtc), which compiles what bench_gpu launches")
        sys.exit(0)
    unittest.main()
