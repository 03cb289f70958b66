"""This repository keeps to its table of rooms, and the checker notices each way not to."""

import pathlib
import tempfile
import unittest

import check_rooms

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = """
pg_room(base LIBS fmt::fmt)
pg_room(ir USES base)
pg_room(render USES ir LIBS a::b
             c::d)
pg_room(tensor USES
  render)
pg_module(llvm USES base)
"""


def check(files):
    """What the checker says about a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "src").mkdir()
        (root / "CMakeLists.txt").write_text(TABLE)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check_rooms.violations(root)


class Repository(unittest.TestCase):
    def test_every_include_is_allowed(self):
        self.assertEqual(check_rooms.violations(ROOT), [])

    def test_the_table_is_the_designs(self):
        rooms = check_rooms.read_rooms((ROOT / "CMakeLists.txt").read_text())
        self.assertEqual(rooms["rules"], {"rules", "rewrite", "ir", "base"})
        self.assertLessEqual({"schedule", "codegen", "render", "runtime"}, rooms["engine"])
        self.assertNotIn("render", rooms["codegen"])
        self.assertNotIn("nn", rooms["tensor"])


class Checker(unittest.TestCase):
    def assert_one(self, files, part):
        messages = check(files)
        self.assertEqual(len(messages), 1, messages)
        self.assertIn(part, messages[0])

    def test_use_is_transitive(self):
        self.assertEqual(check({"src/base/a.h": "", "src/tensor/t.cpp": '#include "base/a.h"\n#include <map>'}), [])

    def test_a_lower_room_may_not_look_up(self):
        self.assert_one({"src/ir/n.h": "", "src/base/a.cpp": '#include "ir/n.h"'}, "base may not include")

    def test_paths_are_written_from_src(self):
        self.assert_one({"src/base/a.h": "", "src/base/a.cpp": '\n# include "a.h"'}, "src/base/a.cpp:2:")

    def test_a_folder_must_be_declared(self):
        self.assert_one({"src/misc/a.cpp": ""}, "no pg_room")

    def test_llvm_stays_in_its_module(self):
        self.assert_one({"src/render/a.cpp": "#include <llvm-c/Core.h>"}, "only src/llvm")
        self.assertEqual(check({"src/llvm/a.cpp": "#include <llvm-c/Core.h>"}), [])

    def test_public_headers_show_no_third_party(self):
        self.assert_one({"include/pangrad/a.h": "#include <absl/types/span.h>"}, "only <pangrad/...>")
        self.assert_one({"include/pangrad/a.h": "#include <sqlite3.h>"}, "only <pangrad/...>")
        self.assert_one({"src/base/a.h": "", "include/pangrad/a.h": '#include "base/a.h"'}, "only <pangrad/...>")
        self.assertEqual(check({"include/pangrad/a.h": "#include <pangrad/b.h>\n#include <cstdint>"}), [])

    def test_public_headers_leave_no_macros(self):
        self.assert_one({"include/pangrad/a.h": "#define MAX 3"}, "MAX")
        self.assertEqual(check({"include/pangrad/a.h": "#define ROW(x) x\n#undef ROW\n#define PG_API"}), [])

    def test_the_table_is_ordered(self):
        with self.assertRaises(ValueError):
            check_rooms.read_rooms("pg_room(a USES b)\npg_room(b)")


if __name__ == "__main__":
    unittest.main()
