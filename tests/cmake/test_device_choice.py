"""-DKINTSUGI_DEVICE_CODE: for which GPUs device code is built, and what is said where none is. Projects are configured and not
built; the driver is that of tests/fakes, the compiler a script that knows its version and its architectures."""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
FAKES = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests" / "fakes"

NVCC = """#!/bin/sh
case $1 in
  --version) echo "Cuda compilation tools, release {0}, V{0}.88" ;;
  --list-gpu-arch) printf 'compute_80\\ncompute_86\\ncompute_90\\ncompute_100\\ncompute_120\\n' ;;
esac
"""
ALL = "sm 80, 90, 100, 120 and PTX of 80, "


class Project:
    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"

    def nvcc(self, version="13.0"):
        script = self.folder / "nvcc"
        script.write_text(NVCC.format(version))
        script.chmod(0o755)
        return f"-DKINTSUGI_NVCC={script}"

    def configure(self, *options, gpus=""):
        """Configures on a machine with GPUs of these compute capabilities, such as "9.0,8.6"."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KINTSUGI_", "CUDA"))}
        environment |= {"LD_LIBRARY_PATH": str(FAKES), "FAKE_CUDA_DEVICES": str(len(gpus.split(",")) if gpus else 0)}
        if gpus:
            environment["FAKE_CUDA_CAPABILITY"] = gpus
        words = ["cmake", "-S", SOURCE, "-B", self.build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={os.environ['TESTED_CXX']}",
                 f"-DCMAKE_C_COMPILER={os.environ['TESTED_CC']}", "-DKINTSUGI_TESTS=OFF", "-DKINTSUGI_TOOLS=OFF", *options]
        return subprocess.run(words, env=environment, capture_output=True, text=True)

    def summary(self, *options, **machine):
        done = self.configure(*options, **machine)
        assert done.returncode == 0, done.stderr
        (line,) = re.findall(r"^Device code: (.*)$", done.stderr, re.MULTILINE)
        return line

    def error(self, *options, **machine):
        done = self.configure(*options, **machine)
        assert done.returncode != 0
        return " ".join(done.stderr.split())

    def architectures(self):
        """Returns the architectures that the compiler of device code is called with."""
        return set(re.findall(r"code=(\w+)", (self.build / "build.ninja").read_text()))

    def pairs(self):
        """Returns the pairs of PTX and machine code, such as ("90", "120"), of files for all architectures."""
        return set(re.findall(r"arch=compute_(\d+),code=sm_(\d+) ", (self.build / "build.ninja").read_text()))

    def reason(self):
        """Returns what the library says of device code that it does not have."""
        return re.search(r'return \{"(.*)", \{arch', (self.build / "src/engine_images.cpp").read_text())[1]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.mark.parametrize("options", [[], ["-DKINTSUGI_DEVICE_CODE=auto"], ["-DCMAKE_CUDA_ARCHITECTURES=native"]])
def test_without_a_gpu_auto_builds_none_and_names_the_option(project, options):
    text = project.summary(project.nvcc(), *options)
    assert text.startswith("none (KINTSUGI_DEVICE_CODE=auto, and no GPU was found in the machine that built it; ")
    assert "-DKINTSUGI_DEVICE_CODE=on builds it for all architectures" in text
    assert project.reason() in text and project.reason()
    assert project.architectures() == set()


@pytest.mark.parametrize("gpus,architectures", [("8.6", "sm 86 and PTX of 86"), ("9.0,8.6,9.0", "sm 86, 90 and PTX of 86"),
                                                ("7.5,9.0", "sm 90 and PTX of 90")])
def test_auto_builds_for_the_gpus_of_the_machine(project, gpus, architectures):
    assert project.summary(project.nvcc(), gpus=gpus) == f"{architectures}, by CUDA 13.0.88 ({project.folder}/nvcc)"
    assert project.reason() == ""
    wanted = set(re.findall(r"sm (\d+)(?:, (\d+))?", architectures)[0]) - {""}
    hopper = {"sm_90a"} if "90" in wanted else set()
    # Kernels of splits that are for Hopper alone, and small, are always there.
    assert project.architectures() - {"sm_90"} - hopper == {f"sm_{a}" for a in wanted} - {"sm_90"} | {f"compute_{min(wanted)}"}
    assert ("sm_90a" in project.architectures()) == ("90" in wanted)


def test_a_gpu_that_is_too_old_is_none(project):
    text = project.summary(project.nvcc(), gpus="7.5")
    assert "the machine that built it has no GPU of compute capability 8.0 or newer" in text


def test_a_gpu_that_is_newer_than_the_toolkit_runs_ptx(project):
    assert project.summary(project.nvcc(), gpus="13.0").startswith(ALL)


def test_on_builds_all_without_a_gpu(project):
    assert project.summary(project.nvcc(), "-DKINTSUGI_DEVICE_CODE=ON").startswith(ALL)
    assert {"sm_80", "sm_90", "sm_90a", "sm_100", "sm_120", "compute_80"} <= project.architectures()


@pytest.mark.parametrize("named,pairs", [
    ("all", {("80", "80"), ("90", "90"), ("90", "100"), ("90", "120")}),
    ("120", {("90", "120")}),
    ("120;103;86", {("86", "86"), ("90", "103"), ("90", "120")}),
    ("86", {("86", "86"), ("90", "90")}),  # kernels for clusters, for GPUs that run the PTX of the others
])
def test_architectures_from_9_0_on_share_ptx(project, named, pairs):
    project.summary(project.nvcc(), f"-DCMAKE_CUDA_ARCHITECTURES={named}")
    assert project.pairs() == pairs


def test_no_source_tells_architectures_apart_that_share_ptx():
    conditions = set()
    for file in (SOURCE / "src").rglob("*"):
        if file.suffix in (".cu", ".cuh", ".hpp"):
            conditions |= set(re.findall(r"__CUDA_ARCH\w*[ <>=!]+\d+", file.read_text()))
    assert conditions == {"__CUDA_ARCH__ >= 900"}


def test_auto_builds_named_architectures_without_a_gpu(project):
    assert project.summary(project.nvcc(), "-DCMAKE_CUDA_ARCHITECTURES=80;90").startswith("sm 80, 90 and PTX of 80, ")
    assert project.summary(project.nvcc(), "-DCMAKE_CUDA_ARCHITECTURES=all").startswith(ALL)
    # A GPU that appears later changes nothing that was named; what was found is asked for anew.
    assert project.summary(gpus="8.6").startswith(ALL)
    assert project.summary("-UCMAKE_CUDA_ARCHITECTURES", gpus="8.6").startswith("sm 86 and PTX of 86, ")


def test_auto_without_a_toolkit_names_its_compiler(project):
    text = project.summary("-DKINTSUGI_NVCC=OFF", gpus="9.0")
    assert "nvcc was not found" in text and "-DKINTSUGI_NVCC=/path/to/nvcc" in text
    assert "is of CUDA 12.4" in project.summary(project.nvcc("12.4"), gpus="9.0")


def test_on_without_a_toolkit_is_an_error(project):
    text = project.error("-DKINTSUGI_DEVICE_CODE=on", "-DKINTSUGI_NVCC=OFF", gpus="9.0")
    assert "nvcc was not found" in text and "-DKINTSUGI_DEVICE_CODE=off builds without it" in text


def test_off_builds_none_beside_a_gpu(project):
    text = project.summary(project.nvcc(), "-DKINTSUGI_DEVICE_CODE=off", gpus="9.0")
    assert text.startswith("none (KINTSUGI_DEVICE_CODE=off; ") and project.architectures() == set()


@pytest.mark.parametrize("option,message", [
    ("-DKINTSUGI_DEVICE_CODE=yes", 'KINTSUGI_DEVICE_CODE is "yes", which is none of auto, on and off'),
    ("-DCMAKE_CUDA_ARCHITECTURES=90a", 'CMAKE_CUDA_ARCHITECTURES has "90a": numbers from 80 on such as 90 are accepted'),
    ("-DCMAKE_CUDA_ARCHITECTURES=75", 'CMAKE_CUDA_ARCHITECTURES has "75"'),
    ("-DKINTSUGI_DEVICE_IMAGES=/nowhere", "KINTSUGI_DEVICE_IMAGES is /nowhere, which is no build folder with device code"),
])
def test_a_bad_value_is_an_error(project, option, message):
    assert message in project.error(project.nvcc(), option)
