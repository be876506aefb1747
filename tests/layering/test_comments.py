"""Comments: at most 110 columns, and a subject first (CONTRIBUTING.md, Style)."""
import pathlib
import re
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tuner", "drop_in", "tools", "lab", "include", "python", "apps", "examples", "tests")
ENDINGS = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp")
WIDTH = 110
NO_SUBJECT = re.compile(r"\s*// (How|Of|What|Where|Whether|Which|Who|Whose)\b")
NO_SUBJECT_IN_PYTHON = re.compile(r'\s*"""(How|Of|What|Where|Whether|Which|Who|Whose)\b')


def tracked(endings):
    names = subprocess.run(["git", "ls-files", "-z", *FOLDERS], cwd=SOURCE, check=True, capture_output=True,
                           text=True).stdout.split("\0")
    return [name for name in names if name.endswith(endings) and (SOURCE / name).is_file()]


def bad_comments(lines):
    """Yields the numbers of the lines that are too wide or begin a comment without its subject."""
    for number, line in enumerate(lines, 1):
        begins = number == 1 or not lines[number - 2].lstrip().startswith("//")
        if ("//" in line and len(line) > WIDTH) or (begins and NO_SUBJECT.match(line)):
            yield number


def test_comments_fit_and_have_subjects():
    bad = [f"{name}:{number}" for name in tracked(ENDINGS)
           for number in bad_comments((SOURCE / name).read_text().splitlines())]
    assert not bad


def test_docstrings_have_subjects():
    bad = [f"{name}:{number}" for name in tracked((".py",))
           for number, line in enumerate((SOURCE / name).read_text().splitlines(), 1) if NO_SUBJECT_IN_PYTHON.match(line)]
    assert not bad


def test_bad_comments_are_found():
    assert list(bad_comments(["// Where it is.", "x", "// " + "a" * WIDTH, "// Sums of", "// which one"])) == [1, 3]
