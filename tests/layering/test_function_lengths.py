"""Functions of more than 40 lines and files of more than 400 only become fewer."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts" / "function_lengths"


def load_script():
    loader = importlib.machinery.SourceFileLoader("function_lengths", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("function_lengths", loader))
    loader.exec_module(module)
    return module


lengths = load_script()

CODE = """#include "a.hpp"
// void not_this() {
namespace n {
struct S {
  S(int a) : a_{a}, b_(a) {
    f();
  }
  int a_ = 0;
  bool operator==(const S&) const { return true; }
};

const int table[] = {1, 2};
constexpr S value{.a = f(1), .b = 2};

template <class T>
auto long_one(const std::vector<T>& x,
              Options o = {}) {
  const char* text = "} {";
  const int many = 1'000'000;
  for (int i = 0; i < 3; ++i) {
    g([&] { h(); });
  }
  if (x) return T{1};
}

TEST(Suite, Name) {
  f();
}
}  // namespace n
"""


def test_functions_are_found():
    assert list(lengths.cpp_functions(CODE)) == [
        ("S", 5, 3), ("operator==", 9, 1), ("long_one", 15, 10), ("TEST(Suite, Name)", 26, 3)]


def test_every_function_that_ends_at_a_line_s_begin_is_found():
    """clang-format closes a function outside classes at the begin of a line, and little else."""
    for path in (SOURCE / "src" / "execute").rglob("*.cpp"):
        text = path.read_text()
        ends = {line + length - 1 for _, line, length in lengths.cpp_functions(text)}
        closed = {number for number, line in enumerate(text.split("\n"), 1) if line == "}"}
        assert closed <= ends, path


def test_long_functions_and_files_are_listed(tmp_path):
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.cpp"
    file.write_text("int f() {\n" + "  g();\n" * 39 + "}\nint h() {\n" + "  g();\n" * 38 + "}\n" + "\n" * 400)
    found = lengths.too_long([file], tmp_path)
    assert found == {"functions": [{"file": "src/a.cpp", "line": 1, "function": "f", "lines": 41}],
                     "files": [{"file": "src/a.cpp", "lines": 481}]}
    limits = {kind: {"src": 1, "tuner": 0, "drop_in": 0, "tools": 0, "tests": 0} for kind in lengths.MAX_LINES}
    assert lengths.above(found, limits) == []
    limits["functions"]["src"] = 0
    assert lengths.above(found, limits) == ["functions of more than 40 lines in src: 1, at most 0"]


def test_there_are_no_more_than_there_were():
    limits = json.loads(lengths.LIMITS.read_text())
    wrong = lengths.above(lengths.too_long(lengths.tracked_files()), limits)
    assert not wrong, f"{wrong}: scripts/function_lengths lists them; once there are fewer, scripts/function_lengths --write"


@pytest.mark.parametrize("flag", ["--json", "--help"])
def test_command(flag):
    done = subprocess.run([sys.executable, SCRIPT, flag], capture_output=True, text=True, check=True)
    if flag == "--json":
        assert json.loads(done.stdout).keys() == lengths.MAX_LINES.keys()
    else:
        assert "example: scripts/function_lengths" in done.stdout


def test_a_wrong_folder_is_named():
    done = subprocess.run([sys.executable, SCRIPT, "--under", "scr"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no scr; accepted is a folder or file under src, tuner, drop_in, tools, tests" in done.stderr
