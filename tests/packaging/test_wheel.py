"""scripts/wheel, and a repaired wheel, which carries its own libgomp, beside torch, which carries another."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
BUILD = pathlib.Path(os.environ["TESTED_LIBRARY"]).parent


def test_help_and_wrong_arguments():
    text = subprocess.run([SOURCE / "scripts/wheel", "--help"], capture_output=True, text=True, check=True).stdout
    assert "example: scripts/wheel" in text and "packaging/wheel-requirements.txt" in text
    for words, message in ((["--devicecode"], "unknown argument '--devicecode'"), (["-o"], "-o needs a folder"),
                           (["--build", "absent"], "absent has no libkintsugi.so")):
        wrong = subprocess.run([SOURCE / "scripts/wheel", *words], capture_output=True, text=True)
        assert wrong.returncode == 2 and message in wrong.stderr and wrong.stdout == ""


THREADS = """
import sys, threading
for name in sys.argv[1:]: __import__(name)
import kintsugi, numpy, torch
torch.set_num_threads(2), kintsugi.set_threads(2)
a = numpy.random.default_rng(1).standard_normal((300, 200))
exact, native = kintsugi.matmul(a, a.T, accuracy="exact"), torch.from_numpy(a) @ torch.from_numpy(a).T
def multiply():
    for _ in range(5):
        assert (kintsugi.matmul(a, a.T, accuracy="exact") == exact).all()
        assert torch.allclose(torch.from_numpy(a) @ torch.from_numpy(a).T, native, rtol=0, atol=1e-11)
        assert (kintsugi.matmul(torch.from_numpy(a), torch.from_numpy(a).T, accuracy="exact").numpy() == exact).all()
threads = [threading.Thread(target=multiply) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
multiply()
print(len({line.split()[-1] for line in open("/proc/self/maps") if "gomp" in line}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder with the package of a repaired wheel."""
    if not shutil.which("auditwheel") or not importlib.util.find_spec("torch"):
        pytest.skip("there is no auditwheel or no torch here")
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE / "python", folder / "python", symlinks=False)
    shutil.copytree(SOURCE / "include", folder / "include")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "plain", folder / "python"],
                   env={**os.environ, "LIBKINTSUGI": str(BUILD / "libkintsugi.so")}, check=True)
    (plain,) = (folder / "plain").glob("*.whl")
    subprocess.run(["auditwheel", "repair", "--exclude", "libcublas*_real.so.*", "-w", folder, plain], check=True)
    (wheel,) = folder.glob("kintsugi-*manylinux*.whl")
    shutil.unpack_archive(wheel, folder / "site", "zip")
    return folder / "site"


@pytest.mark.parametrize("order", [["torch", "kintsugi"], ["kintsugi", "torch"]])
def test_two_openmp_runtimes_in_one_process(site, order):
    run = subprocess.run([sys.executable, "-c", THREADS, *order], env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True,
                         text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "2\n", "torch's libgomp and the wheel's"
