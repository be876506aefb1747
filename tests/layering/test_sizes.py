"""Sizes of folders and interfaces: a reader finds a file by its folder, and sees a whole interface at once."""
import collections
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("src", "tuner", "drop_in", "tools", "lab", "python", "include", "apps", "examples", "tests")
MAX_FILES = 20
MAX_VIRTUAL_FUNCTIONS = 15
# One file per scheme; and a drop-in whose level-3 functions are being moved into a folder.
LARGE_FOLDERS = {"src/schemes": 40, "lab/results/log": 44, "lab/results/papers": 44, "drop_in/cublas": 26}

CLASS = re.compile(r"^(?:class|struct) (\w+)[^;{}]*\{(.*?)^\};", re.DOTALL | re.MULTILINE)


def files_of_folders():
    counts = collections.Counter()
    for module in MODULES:
        for path in (SOURCE / module).rglob("*"):
            made = {"__pycache__", "build"} & set(path.relative_to(SOURCE).parts)  # by Python and pip
            if path.is_file() and not made and path.suffix != ".pyc":
                counts[str(path.parent.relative_to(SOURCE))] += 1
    return counts


def virtual_functions(text):
    """Yields the name of each class with the number of functions that it declares virtual, destructors apart."""
    for name, body in CLASS.findall(text):
        yield name, len(re.findall(r"\bvirtual (?!~)", body))


def test_folders_are_small():
    large = {folder: count for folder, count in files_of_folders().items() if count > LARGE_FOLDERS.get(folder, MAX_FILES)}
    assert not large, "make subfolders by subject"


def test_interfaces_are_small():
    large = {name: count for module in MODULES for path in (SOURCE / module).rglob("*.[hc]pp")
             for name, count in virtual_functions(path.read_text()) if count > MAX_VIRTUAL_FUNCTIONS}
    assert not large, "split the interface"


def test_virtual_functions_are_counted():
    text = "class A {\n  virtual ~A() = default;\n  virtual void f() = 0;\n  virtual int g() const;\n};\n"
    assert list(virtual_functions(text)) == [("A", 2)]
