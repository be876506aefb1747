"""docs/design/one-call.md: files and names in backticks exist, names in a file that the same paragraph names."""

import os
import pathlib
import re

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[2]))
PAGE = SOURCE / "docs/design/one-call.md"
ENDINGS = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".def"}
QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\(\))?")


def paragraphs(text):
    """Paragraphs and list items of a page, each with what it has in backticks."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\d+\. |- )", text):
        yield QUOTED.findall(paragraph)


def words_of(files):
    return {word for file in files if file.suffix in ENDINGS for word in re.findall(r"\w+", file.read_text())}


def wrong_names(text, root):
    """Paths without a file, and names that no file of their paragraph has; of a paragraph without files, no file at all."""
    every_word = words_of(file for top in ("src", "include") for file in (root / top).rglob("*"))
    for quoted in paragraphs(text):
        files = []
        for path in (text for text in quoted if "/" in text):
            if (root / path).exists():
                continue
            file = root / "src" / path
            if file.is_file():
                files += file.parent.glob(file.stem + ".*")  # with the header
            else:
                yield path
        words = words_of(files) if files else every_word
        for name in (text for text in quoted if NAME.fullmatch(text)):
            if not set(re.findall(r"\w+", name)) <= words:
                yield name


def test_files_and_names_exist():
    assert list(wrong_names(PAGE.read_text(), SOURCE)) == []


def test_every_step_names_a_file():
    steps = [quoted for quoted in paragraphs(PAGE.read_text()) if any(path.endswith((".cpp", ".hpp", ".cu")) for path in quoted)]
    assert len(steps) > 15


def test_wrong_names_are_found(tmp_path):
    (tmp_path / "src/planner").mkdir(parents=True)
    (tmp_path / "include").mkdir()
    (tmp_path / "src/planner/plan.cpp").write_text("void make_plan() {}\n")
    (tmp_path / "src/planner/memory.cpp").write_text("void fit() {}\n")
    text = ("`make_plan` and `made_up`\n\n1. `planner/plan.cpp`: `make_plan()`, `fit`, `Plan::fit`\n"
            "2. `planner/gone.cpp`: `fit`\n- `planner/memory.cpp`: `fit`, no name: `a = 1`\n")
    assert list(wrong_names(text, tmp_path)) == ["made_up", "fit", "Plan::fit", "planner/gone.cpp"]
