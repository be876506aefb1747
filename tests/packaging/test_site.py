"""scripts/site: the pages keep their links in the copy that mkdocs reads; a link that leads nowhere ends the build."""

import importlib.util
import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])


@pytest.fixture
def site():
    return runpy.run_path(str(SOURCE / "scripts/site"))


def test_links_lead_somewhere_in_the_copy(site, tmp_path):
    site["copy_pages"](tmp_path)
    pages = list(tmp_path.glob("**/*.md"))
    assert {"README.md", "docs/PYTHON.md", "docs/schemes/README.md", "reference.md"} <= {page.relative_to(tmp_path).as_posix() for page in pages}
    targets = {page.parent / link.partition("#")[0] for page in pages for link in site["LINK"].findall(page.read_text())
               if re.fullmatch(r"[\w./-]+\.(md|svg|json|h|hpp|py)(#.*)?", link)}
    assert len(targets) > 100 and all(target.is_file() for target in targets)


def test_the_reference_names_public_modules_alone(site):
    modules = re.findall(r"^::: (.*)$", site["reference"](), re.MULTILINE)
    assert modules[0] == "kintsugi" and not any("._" in module for module in modules)


def test_an_example_is_run_for_its_page(site, tmp_path):
    """Comments that begin a line become text between the code; a picture that was not drawn and a failure are errors."""
    program = tmp_path / "add.py"
    program.write_text('"""Add numbers: two of them.\n\nRun: python3 add.py\n"""\n\nx = 1\n\n# Their\n# sum.\nprint(x + 1)\n'
                       'open("add.svg", "w").close()\n')
    page = site["example_page"](program, sys.executable, tmp_path)
    assert page.startswith("# Add numbers\n") and "\nTwo of them.\n" in page and "`python3 add.py`" in page
    assert "```\n\nTheir\nsum.\n\n```python\nprint" in page
    assert page.endswith("```text\n2\n```\n\n![Add numbers](add.svg)\n")
    (tmp_path / "add.svg").unlink()
    program.write_text('"""Add numbers: none."""\n')
    with pytest.raises(AssertionError, match="no add.svg"):
        site["example_page"](program, sys.executable, tmp_path)
    program.write_text('"""Add numbers: none."""\nimport torch_that_is_absent\n')
    with pytest.raises(SystemExit, match="torch_that_is_absent"):
        site["example_page"](program, sys.executable, tmp_path)
    program.write_text('"""Add numbers: none."""\nraise ModuleNotFoundError("No module named \'torch\'")\n')
    assert "\nNot run for this site" in site["example_page"](program, sys.executable, tmp_path)


def test_help():
    run = subprocess.run([SOURCE / "scripts/site", "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and "example: scripts/site" in run.stdout


def test_mkdocs_builds_it_and_finds_broken_links(tmp_path):
    if not all(map(importlib.util.find_spec, ("mkdocs", "material", "matplotlib", "kintsugi"))):
        pytest.skip("mkdocs-material, matplotlib or kintsugi is missing here; .ci/run runs scripts/site")
    subprocess.run(["git", "clone", "-q", SOURCE, tmp_path / "clone"], check=True)
    script = [sys.executable, tmp_path / "clone/scripts/site", "--no-install"]
    subprocess.run(script, check=True, capture_output=True)
    text = (tmp_path / "clone/build-site/site/reference.html").read_text()
    assert 'id="kintsugi.matmul"' in text and "fonts.googleapis" not in text
    examples = (tmp_path / "clone/build-site/site/examples/python/index.html").read_text()
    assert len(re.findall(r'<img alt="" src="\w+\.svg"', examples)) >= 10
    with open(tmp_path / "clone/docs/TERMS.md", "a") as page:
        page.write("\n[x](absent.md)\n")
    broken = subprocess.run(script, capture_output=True, text=True)
    assert broken.returncode != 0 and "absent.md" in broken.stderr
