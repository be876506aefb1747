"""The Debian package that cpack makes of this build folder."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["TESTED_BUILD"])

pytestmark = [
    pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1", reason="a sanitized library is not packed"),
    pytest.mark.skipif("TESTED_PROGRAM" not in os.environ, reason="built without the program"),
    pytest.mark.skipif(not shutil.which("dpkg-shlibdeps"), reason="there is no dpkg-shlibdeps here (Debian: dpkg-dev)"),
]


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Not compressed, which would take most of the time. The staged tree goes where $TMPDIR is."""
    folder = tmp_path_factory.mktemp("debian")
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none", cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    shutil.rmtree(folder / "_CPack_Packages")
    (file,) = folder.glob("kintsugi_*-1_*.deb")
    return file


@pytest.fixture(scope="module")
def tree(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    run("dpkg-deb", "-x", package, folder)
    return folder / "usr"


def test_what_it_depends_on(package):
    """Dependencies are those that dpkg-shlibdeps finds, and the BLAS that the library opens by name."""
    packages = {re.match(r"\S+", part)[0] for part in run("dpkg-deb", "-f", package, "Depends").split(", ")}
    assert packages == {"libc6", "libgcc-s1", "libgomp1", "libstdc++6", "libopenblas0-pthread"}


def test_manual_and_completion_are_where_shells_look(tree):
    program = os.environ["TESTED_PROGRAM"]
    assert run("gzip", "-dc", tree / "share/man/man1/kintsugi.1.gz") == run(program, "--man")
    pages = {"bash": "bash-completion/completions/kintsugi", "fish": "fish/vendor_completions.d/kintsugi.fish"}
    for shell, page in pages.items():
        assert (tree / "share" / page).read_text() == run(program, "completion", shell)
    (page,) = tree.glob("share/zsh/*/_kintsugi")
    assert page.read_text() == run(program, "completion", "zsh")


def test_copyright_and_changelog(tree):
    text = (tree / "share/doc/kintsugi/copyright").read_text()
    assert "Apache-2.0" in text and "CLI11" in text and "GNU GENERAL PUBLIC LICENSE" not in text, "libgomp is Debian's own"
    changelog = run("gzip", "-dc", tree / "share/doc/kintsugi/changelog.Debian.gz")
    assert changelog.startswith("kintsugi (") and "Tue, 14 Nov 2023 22:13:20 +0000" in changelog


def test_the_program_runs_from_the_unpacked_package(tree, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    run(tree / "bin/kintsugi", "generate", "uniform", "9x9", "-o", "A.npy", cwd=tmp_path, env=environment)
    run(tree / "bin/kintsugi", "gemm", "A.npy", "A.npy", "--accuracy", "exact", "--check", cwd=tmp_path, env=environment)
    maps = run("ldd", tree / "bin/kintsugi", env=environment)
    assert str(tree) in re.search(r"libkintsugi\.so\.\d+ => (\S+)", maps)[1]


def test_lintian_finds_no_error(package):
    if not shutil.which("lintian"):
        pytest.skip("there is no lintian here")
    found = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--suppress-tags", "uses-no-compression-for-data-tarball",
                            package], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
