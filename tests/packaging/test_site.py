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


def test_help():
    run = subprocess.run([SOURCE / "scripts/site", "--help"], capture_output=True, text=True)
    assert run.returncode == 0 and "example: scripts/site" in run.stdout


def test_mkdocs_builds_it_and_finds_broken_links(tmp_path):
    if not importlib.util.find_spec("mkdocs") or not importlib.util.find_spec("material"):
        pytest.skip("there is no mkdocs-material here; .ci/run runs scripts/site")
    subprocess.run(["git", "clone", "-q", SOURCE, tmp_path / "clone"], check=True)
    script = [sys.executable, tmp_path / "clone/scripts/site", "--no-install"]
    subprocess.run(script, check=True, capture_output=True)
    text = (tmp_path / "clone/build-site/site/reference.html").read_text()
    assert 'id="kintsugi.matmul"' in text and "fonts.googleapis" not in text
    with open(tmp_path / "clone/docs/TERMS.md", "a") as page:
        page.write("\n[x](absent.md)\n")
    broken = subprocess.run(script, capture_output=True, text=True)
    assert broken.returncode != 0 and "absent.md" in broken.stderr
