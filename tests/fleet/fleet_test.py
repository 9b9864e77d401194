"""fleet_test.py FOLDER_OF_EXAMPLES KILN: the files for schedulers, read as strictly as can be without a scheduler, and what they
run, run."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("skipped: Python has no yaml (Debian: python3-yaml)")
    sys.exit(0)

EXAMPLES, KILN = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]

# What a Job may hold, as far as the examples use it: the API server refuses a field that it does not know. A folder of
# fields, [what each of a list is], or the type of a value.
NAMED = {"name": str}
CONTAINER = {
    "name": str, "image": str, "command": [str], "args": [str],
    "env": [{"name": str, "value": str,
             "valueFrom": {"resourceFieldRef": {"containerName": str, "resource": str}}}],
    "resources": {"requests": {"cpu": str, "memory": str}, "limits": {"cpu": str, "memory": str}},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
JOB = {
    "apiVersion": str, "kind": str, "metadata": NAMED,
    "spec": {
        "completionMode": str, "completions": int, "parallelism": int, "backoffLimit": int,
        "template": {"spec": {
            "restartPolicy": str, "containers": [CONTAINER],
            "volumes": [{"name": str, "configMap": NAMED, "persistentVolumeClaim": {"claimName": str},
                         "secret": {"secretName": str}, "emptyDir": {}}],
        }},
    },
}
# The options of sbatch that the example uses, and what their values look like.
SBATCH = {"job-name": r"[\w-]+", "array": r"0-\d+", "ntasks": r"1", "cpus-per-task": r"\d+", "mem": r"\d+[KMGT]",
          "time": r"\d\d:\d\d:\d\d", "output": r"[\w-]*%A_%a\.log"}


class Strict(yaml.SafeLoader):
    """YAML that takes no key twice."""


def without_doubles(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    if len(keys) != len(set(keys)):
        raise yaml.YAMLError("a key twice, line %d" % (node.start_mark.line + 1))
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, without_doubles)


def faults(value, form, where=""):
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return ["%s: expected fields" % where]
        unknown = ["%s/%s: unknown" % (where, key) for key in value if key not in form]
        return unknown + [fault for key in value if key in form
                          for fault in faults(value[key], form[key], "%s/%s" % (where, key))]
    if isinstance(form, list):
        if not isinstance(value, list):
            return ["%s: expected a list" % where]
        return [fault for i, one in enumerate(value) for fault in faults(one, form[0], "%s/%d" % (where, i))]
    return [] if type(value) is form else ["%s: expected %s, found %r" % (where, form.__name__, value)]


def read_job(text):
    job = yaml.load(text, Strict)
    return job, faults(job, JOB)


class FleetTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kiln-fleet-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("KILN_", "SLURM_")) or name == "KILN_ROCM_PREFIX"}
        self.environment["PATH"] = os.path.dirname(KILN) + ":" + self.environment["PATH"]
        self.environment["XDG_CONFIG_HOME"] = self.environment["XDG_CONFIG_DIRS"] = self.path("none")
        for name in ("tables", "bundles", "keys", "scratch"):
            os.mkdir(self.path(name), 0o700)
        self.table = self.path("tables/mine.json")
        self.kiln("suggest", "linear", "n=48", "k=384", "--out", self.table)
        self.kiln("suggest", "linear", "n=64", "k=256", "--out", self.path("tables/other.json"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_words(self, words, **variables):
        return subprocess.run(words, env={**self.environment, **variables}, cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def succeed(self, words, **variables):
        done = self.run_words(words, **variables)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def kiln(self, *words, **variables):
        return self.succeed([KILN, *words], KILN_CACHE_DIR=self.path("unused"), **variables)

    def serves_the_tables(self, bundle):
        self.kiln("warm", "--check", "--target", "gfx950", *sorted(glob.glob(self.path("tables/*.json"))),
                  KILN_CACHE_PATH=bundle, KILN_JIT="off")

    # What one pod would run, with the volumes where this test has them.
    def run_pod(self, job, index):
        container = job["spec"]["template"]["spec"]["containers"][0]
        mounts = sorted(mount["mountPath"] for mount in container["volumeMounts"])
        pattern = re.compile("(?<![\\w/])(%s)(?=/)" % "|".join(map(re.escape, mounts)))

        def here(text):
            return pattern.sub(lambda found: self.folder + found[0], text)

        variables = {one["name"]: here(one.get("value", "1")) for one in container["env"]}
        if job["spec"].get("completionMode") == "Indexed":
            variables["JOB_COMPLETION_INDEX"] = str(index)
        return self.succeed(container["command"] + [here(word) for word in container["args"]], **variables)

    def job(self, name):
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
            job, wrong = read_job(file.read())
        self.assertEqual(wrong, [])
        self.assertEqual((job["apiVersion"], job["kind"]), ("batch/v1", "Job"))
        spec = job["spec"]["template"]["spec"]
        self.assertIn(spec["restartPolicy"], ("Never", "OnFailure"))  # a Job takes no other
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in spec["containers"]:
            self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)
            for one in container["env"]:
                self.assertEqual(len({"value", "valueFrom"} & set(one)), 1, one)
                self.assertEqual(one.get("valueFrom", {"resourceFieldRef": {"containerName": container["name"],
                                                                            "resource": "limits.cpu"}}),
                                 {"resourceFieldRef": {"containerName": container["name"], "resource": "limits.cpu"}})
        return job

    def test_pods_of_the_job_make_one_bundle(self):
        warm, merge = self.job("kubernetes-warm.yaml"), self.job("kubernetes-merge.yaml")
        pods = warm["spec"]["completions"]
        self.assertEqual(warm["spec"]["completionMode"], "Indexed")
        self.assertEqual(warm["spec"]["parallelism"], pods)
        for job in (warm, merge):
            given = {one["name"]: one.get("value") for one in job["spec"]["template"]["spec"]["containers"][0]["env"]}
            self.assertEqual(given["SHARDS"], str(pods))

        # What the volume holds of a release before, with other tables, is replaced.
        os.remove(self.path("tables/other.json"))
        for index in range(pods):
            self.run_pod(warm, index)
        self.kiln("suggest", "linear", "n=64", "k=256", "--out", self.path("tables/other.json"))
        for index in range(pods):
            self.run_pod(warm, index)
        self.assertEqual(len(os.listdir(self.path("bundles"))), pods)

        self.succeed(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.path("keys/key.pem")])
        self.succeed(["openssl", "pkey", "-in", self.path("keys/key.pem"), "-pubout", "-out", self.path("key.pub")])
        for _ in range(2):  # a pod that is started again replaces what is there
            self.assertIn("signed by", self.run_pod(merge, 0))
        bundle = self.path("bundles/engine.kiln")
        self.serves_the_tables(bundle)
        self.kiln("bundle", "verify", bundle, KILN_TRUSTED_KEYS=self.path("key.pub"))

    def test_tasks_of_the_array_make_one_bundle(self):
        script = os.path.join(EXAMPLES, "slurm-warm.sh")
        self.succeed(["bash", "-n", script])
        with open(script, encoding="utf-8") as file:
            lines = file.read().splitlines()
        commands = [i for i, line in enumerate(lines) if line and not line.startswith("#")]
        options = {}
        for i, line in enumerate(lines):
            if line.startswith("#SBATCH"):
                self.assertLess(i, commands[0], "sbatch reads no option after the first command")
                name, value = re.fullmatch(r"#SBATCH --([a-z-]+)=(\S+)", line).groups()
                self.assertRegex(value, "^(%s)$" % SBATCH[name])
                options[name] = value
        tasks = int(options["array"][2:]) + 1
        self.assertIn("shards=%d " % tasks, "\n".join(lines))

        tables = sorted(glob.glob(self.path("tables/*.json")))
        for index in range(tasks):
            variables = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_TASK_COUNT": str(tasks),
                         "SLURM_CPUS_PER_TASK": "1", "TMPDIR": self.path("scratch")}
            self.succeed(["bash", script, "bundles", *tables], **variables)
        # One task again, which Slurm then counts as an array of one.
        variables["SLURM_ARRAY_TASK_COUNT"] = "1"
        with open(self.path("bundles/part-%d-of-%d.kiln" % (tasks - 1, tasks)), "w", encoding="utf-8") as stale:
            stale.write("of a release before")
        self.succeed(["bash", script, "bundles", *tables], **variables)
        self.assertEqual(len(os.listdir(self.path("bundles"))), tasks)
        self.assertEqual(os.listdir(self.path("scratch")), [])
        self.assertEqual(self.run_words(["bash", script], **variables).returncode, 2)

        merge = re.search(r"--wrap '(.*)'", "\n".join(lines))[1]
        self.assertIn("part-*-of-%d.kiln " % tasks, merge)
        self.succeed(["bash", "-c", merge])
        self.serves_the_tables(self.path("bundles/engine.kiln"))

    def test_faults_of_a_job_are_seen(self):
        with open(os.path.join(EXAMPLES, "kubernetes-warm.yaml"), encoding="utf-8") as file:
            text = file.read()
        for before, after in (("completions:", "completion:"), ('value: "4"', "value: 4"), ("- name: warm", "name: warm")):
            self.assertIn(before, text)
            try:
                self.assertNotEqual(read_job(text.replace(before, after))[1], [], after)
            except yaml.YAMLError:
                pass
        with self.assertRaises(yaml.YAMLError):
            read_job(text.replace("parallelism:", "completions:"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
