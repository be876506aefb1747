"""Interfaces are small: a reader sees a whole one at once."""
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("src", "tuner", "drop_in", "tools", "lab", "python", "include", "examples", "tests")
MAX_VIRTUAL_FUNCTIONS = 15

CLASS = re.compile(r"^(?:class|struct) (\w+)[^;{}]*\{(.*?)^\};", re.DOTALL | re.MULTILINE)


def virtual_functions(text):
    """Yields the name of each class with the number of functions that it declares virtual, destructors apart."""
    for name, body in CLASS.findall(text):
        yield name, len(re.findall(r"\bvirtual (?!~)", body))


def test_interfaces_are_small():
    large = {name: count for module in MODULES for path in (SOURCE / module).rglob("*.[hc]pp")
             for name, count in virtual_functions(path.read_text()) if count > MAX_VIRTUAL_FUNCTIONS}
    assert not large, "split the interface"


def test_virtual_functions_are_counted():
    text = "class A {\n  virtual ~A() = default;\n  virtual void f() = 0;\n  virtual int g() const;\n};\n"
    assert list(virtual_functions(text)) == [("A", 2)]
