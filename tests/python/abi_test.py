"""abi_test.py INCLUDE_FOLDER C_COMPILER: what the package declares of the C ABI, against the headers. What the headers have is
found in their text; sizes, offsets and values are the C compiler's."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from dataclasses import fields

INCLUDE, COMPILER = sys.argv[1:3]
del sys.argv[1:3]

import kiln  # noqa: E402
from kiln import _abi, _enums  # noqa: E402
from kiln._library import lib  # noqa: E402
from kiln._plans import PLANS  # noqa: E402

HEADERS = ["kiln.h", "linear.h", "router.h", "moe_sort.h", "fused_moe.h", "formats.h"]


def header_text():
    text = ""
    for name in HEADERS:
        with open(os.path.join(INCLUDE, "kiln", name), encoding="utf-8") as file:
            text += file.read()
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


TEXT = header_text()


def c_type(text):
    """A type as both sides write it: no const, a pointer to data is a pointer, size_t is uint64_t."""
    words = re.sub(r"\bconst\b", " ", text).replace("*", " * ").split()
    base, stars = words[0], words.count("*")
    base = {"kiln_status": "int32_t", "size_t": "uint64_t"}.get(base, base)
    return base + "*" * stars


def split_declarator(text):
    """`const float* scales` or `char name[128]`: the type, the name."""
    match = re.fullmatch(r"(.*?)(\w+)\s*(\[\d+\])?", text.strip(), flags=re.DOTALL)
    return c_type(match.group(1)) + (match.group(3) or ""), match.group(2)


def header_functions():
    found = {}
    for result, name, parameters in re.findall(r"KILN_API\s+(?:KILN_NODISCARD\s+)?([\w\s*]+?)\b(kiln_\w+)\(([^;]*?)\);", TEXT):
        types = [] if parameters.strip() == "void" else [split_declarator(one)[0] for one in parameters.split(",")]
        found[name] = (c_type(result), types)
    return found


def header_structs():
    """Name: [(member, type)]."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", TEXT, flags=re.DOTALL):
        members = [split_declarator(line) for line in body.split(";") if line.strip()]
        found[name] = [(member, kind) for kind, member in members]
    return found


def header_enums():
    """Name: [enumerator]."""
    return {
        name: re.findall(r"\b(KILN_\w+)\s*=", body)
        for name, body in re.findall(r"typedef enum (\w+) \{(.*?)\} \1;", TEXT, flags=re.DOTALL)
    }


def declared_type(kind):
    """The C name of a type of ctypes."""
    if kind is None:
        return "void"
    for name, callback in _abi.CALLBACKS.items():
        if kind is callback:
            return name
    if hasattr(kind, "contents"):
        return declared_type(kind._type_) + "*"
    if issubclass(kind, ctypes.Structure):
        return kind.__name__
    if issubclass(kind, ctypes.Array):
        return f"{declared_type(kind._type_)}[{kind._length_}]"
    return {
        ctypes.c_void_p: "void*", ctypes.c_char_p: "char*", ctypes.c_char: "char", ctypes.c_float: "float", ctypes.c_double: "double",
        ctypes.c_int32: "int32_t", ctypes.c_uint32: "uint32_t", ctypes.c_int64: "int64_t", ctypes.c_uint64: "uint64_t",
    }[kind]  # fmt: skip


def compiled():
    """What the compiler makes of the headers: {"size": {struct: bytes}, "offset": {struct.member: bytes}, "value": {...}}."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "kiln/kiln.h"', '#include "kiln/formats.h"', "int main(void) {"]
    lines.append('printf("{\\"size\\": {\\"\\": 0");')
    for struct in header_structs():
        lines.append(f'printf(", \\"{struct}\\": %zu", sizeof({struct}));')
    lines.append('printf("}, \\"offset\\": {\\"\\": 0");')
    for struct, members in header_structs().items():
        for member, _ in members:
            lines.append(f'printf(", \\"{struct}.{member}\\": %zu", offsetof({struct}, {member}));')
    lines.append('printf("}, \\"value\\": {\\"\\": 0");')
    for name in ["KILN_VERSION_MAJOR", "KILN_VERSION_MINOR", "KILN_VERSION_PATCH", "KILN_NO_DEVICE", "KILN_OK"] + sum(
        header_enums().values(), []
    ):
        lines.append(f'printf(", \\"{name}\\": %d", (int){name});')
    lines.append('printf("}}\\n"); return 0; }')
    with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
        source, program = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([COMPILER, "-std=c11", "-I", INCLUDE, source, "-o", program], check=True)
        return json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)


class AbiTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.compiled = compiled()

    def test_the_headers_are_understood(self):
        self.assertEqual(len(header_functions()), len(re.findall(r"^KILN_API", TEXT, flags=re.MULTILINE)))
        self.assertEqual(len(header_enums()), TEXT.count("typedef enum "))
        self.assertIn(("compile_seconds", "double"), header_structs()["kiln_statistics"])
        self.assertEqual(header_functions()["kiln_plan_workspace_bytes"], ("int64_t", ["kiln_plan*", "int64_t"]))

    def test_every_function_is_declared_as_it_is(self):
        declared = {
            name: (declared_type(result), [declared_type(parameter) for parameter in parameters])
            for name, (result, parameters) in _abi.FUNCTIONS.items()
        }
        headers = header_functions()
        differing = {
            name: {"declared": declared.get(name), "header": headers.get(name)}
            for name in declared.keys() | headers.keys()
            if declared.get(name) != headers.get(name)
        }
        self.assertEqual(differing, {})
        for name in declared:
            self.assertTrue(hasattr(lib, name), name)

    def test_every_callback_is_declared_as_it_is(self):
        found = {}
        for result, name, parameters in re.findall(r"typedef ([\w\s*]+?)\(\*(\w+)\)\(([^;]*?)\);", TEXT):
            found[name] = (c_type(result), [split_declarator(one)[0] for one in parameters.split(",")])
        declared = {
            name: (declared_type(callback._restype_), [declared_type(one) for one in callback._argtypes_])
            for name, callback in _abi.CALLBACKS.items()
        }
        self.assertEqual(declared, found)

    def test_every_struct_has_the_members_types_sizes_and_offsets(self):
        def data(kind):
            return "void*" if kind.endswith("*") and kind != "char*" else kind

        headers = header_structs()
        self.assertEqual({struct.__name__ for struct in _abi.STRUCTS}, set(headers))
        for struct in _abi.STRUCTS:
            name = struct.__name__
            with self.subTest(struct=name):
                declared = [(member, declared_type(kind)) for member, kind in struct._fields_]
                self.assertEqual(declared, [(member, data(kind)) for member, kind in headers[name]])
                self.assertEqual(ctypes.sizeof(struct), self.compiled["size"][name])
                for member, _ in struct._fields_:
                    self.assertEqual(getattr(struct, member).offset, self.compiled["offset"][f"{name}.{member}"], member)

    def test_every_enumeration_has_the_values(self):
        headers = header_enums()
        self.assertEqual(set(_enums.C_NAMES), set(headers))
        for name, (enumeration, prefix) in _enums.C_NAMES.items():
            with self.subTest(enumeration=name):
                expected = {one: self.compiled["value"][one] for one in headers[name]}
                self.assertEqual({prefix + value.name: int(value) for value in enumeration}, expected)

    def test_problems_have_the_members_of_their_structs(self):
        for problem in PLANS:
            with self.subTest(problem=problem.__name__):
                members = {name for name, _ in problem._struct._fields_} - {"struct_size", "reserved"}
                self.assertEqual({field.name for field in fields(problem)}, members)

    def test_versions_agree(self):
        value = self.compiled["value"]
        self.assertEqual(_abi.VERSION, tuple(value[f"KILN_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")))
        self.assertEqual(kiln.library_version(), kiln.__version__)
        self.assertEqual((kiln.NO_DEVICE, 0), (value["KILN_NO_DEVICE"], value["KILN_OK"]))

    def test_another_version_is_refused(self):
        major, minor, _ = _abi.VERSION
        other = f"{major}.{minor + 1}.0"
        with tempfile.TemporaryDirectory(prefix="kiln-test-") as folder:
            for version, text in ((other, f"found: version {other}"), (kiln.__version__, "found: .*kiln_")):
                source, library = os.path.join(folder, "version.c"), os.path.join(folder, f"libkiln-{version}.so")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(f'const char* kiln_version(void) {{ return "{version}"; }}\n')
                subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", library], check=True)
                done = subprocess.run(
                    [sys.executable, "-B", "-c", "import kiln"], env=os.environ | {"KILN_LIBRARY": library}, capture_output=True, text=True
                )
                self.assertRegex(done.stderr, f"ImportError: expected libkiln {major}.{minor} at {library}, {text}")


if __name__ == "__main__":
    unittest.main()
