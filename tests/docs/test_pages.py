"""The pages: every link leads somewhere, every named file exists, they stay short, and pictures are those of their data."""

import os
import pathlib
import re
import runpy
import urllib.parse

import pytest

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[2]))
PAGES = sorted([*SOURCE.glob("*.md"), *(page for folder in ("docs", "python", "examples", "lab") for page in SOURCE.glob(f"{folder}/**/*.md"))])
# Pages that say what was there at their date.
RECORDS = ("CHANGELOG.md", "docs/results/", "lab/results/")
# Most words of the pages that one reads first, and of all but the laboratory's and those of results.
LENGTHS = {"README.md": 700, "CONTRIBUTING.md": 700, "docs/ARCHITECTURE.md": 1500}
TOTAL = 42_200
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^()\n]+)\)")
PATH = re.compile(r"`((?:src|tests|tools|lab|docs|scripts|cmake|python|include|examples|drop_in|tuner)/[\w./{},*-]+)`")


def name_of(page):
    return page.relative_to(SOURCE).as_posix()


def anchors(text):
    """Names that the headings of a page give to links, as GitHub makes them."""
    found = {}
    for heading in re.findall(r"^#+ +(.*)$", FENCED.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {slug + (f"-{number}" if number else "") for slug, count in found.items() for number in range(count + 1)}


def broken_links(page):
    text = page.read_text()
    for link in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = urllib.parse.unquote(link).partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and (not target.suffix == ".md" or anchor not in anchors(target.read_text())):
            yield f"{link}: no such heading"


def spelt_out(path):
    """a/{b,c}.md: a/b.md, a/c.md"""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    return [name for word in braces[1].split(",") for name in spelt_out(path[:braces.start()] + word + path[braces.end():])]


def missing_files(page):
    """Files and folders that a page names, and that neither exist nor are made by one of its blocks."""
    text = page.read_text()
    made = set(re.findall(r"^```\w+ file=(\S+)$", text, re.MULTILINE))
    for written in PATH.findall(FENCED.sub("", text)):
        for path in spelt_out(written):
            pattern = re.sub(r"\b(NAME|FILE)\b", "*", path.rstrip("/"))
            if path not in made and not any(SOURCE.glob(pattern)):
                yield path


def test_there_are_pages():
    assert {"README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/schemes/ozaki2.md"} <= {name_of(page) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", [page for page in PAGES if not name_of(page).startswith(RECORDS)], ids=name_of)
def test_files_that_are_named_exist(page):
    assert list(missing_files(page)) == []


@pytest.mark.parametrize("name", LENGTHS)
def test_first_pages_stay_short(name):
    words = len((SOURCE / name).read_text().split())
    assert words <= LENGTHS[name], f"{name} has {words} words, more than {LENGTHS[name]}"


def test_all_pages_together_stay_short():
    words = {name_of(page): len(page.read_text().split()) for page in PAGES if not name_of(page).startswith(("docs/results/", "lab/"))}
    assert sum(words.values()) <= TOTAL, f"{sum(words.values())} words; the longest: {sorted(words.items(), key=lambda item: -item[1])[:10]}"


@pytest.mark.parametrize("name", ["make_speed_chart.py", "make_data_way.py"])
def test_pictures_are_those_that_their_scripts_draw(name):
    script = runpy.run_path(str(SOURCE / "docs" / "pictures" / name))
    assert script["PICTURE"].read_text() == script["drawing"](), f"draw it again: docs/pictures/{name}"


# ---------------------------------------------------------------- the harness sees what is wrong

def test_broken_links_and_missing_files_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One `two`, three\n\n[a](#one-two-three) [b](#two) [c](page.md) [d](gone.md) [e](page.md#three)\n"
                    "```\n[f](gone.md)\n```\n`src/no/such/file.cpp` and `docs/{TERMS,GONE}.md`\n")
    assert [line.split(":")[0] for line in broken_links(page)] == ["#two", "gone.md", "page.md#three"]
    assert list(missing_files(page)) == ["src/no/such/file.cpp", "docs/GONE.md"]
