"""The engine cuda where something of it is missing: the program runs, says what is missing, and multiplies without it.
The driver and cuBLAS are those of tests/fakes."""

import os
import pathlib

import pytest

FAKES = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests" / "fakes"


@pytest.fixture
def fakes(program):
    """The fakes in a folder where a test may spoil them."""
    folder = program.folder / "fakes"
    folder.mkdir()
    for name in ("libcuda.so.1", "libcublas.so.13"):
        (folder / name).write_bytes((FAKES / name).read_bytes())
    return folder


def engine(program, environment):
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (cuda,) = [engine for engine in engines if engine["name"] == "cuda"]
    return cuda


def has_device_code(program):
    return engine(program, {})["requirements"][0]["met"]


def multiplies_on_the_host(program, environment):
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    words = ["gemm", "A.npy", "A.npy", "--check", "--json"]
    (row,) = program.ok(*words, environment=environment).json()["rows"]
    return row["engine"] in ("cpu", "reference")


def spoil_driver(folder):
    (folder / "libcuda.so.1").write_bytes(b"no library")


def remove_driver_symbol(folder):
    library = folder / "libcuda.so.1"
    library.write_bytes(library.read_bytes().replace(b"\0cuKernelSetAttribute\0", b"\0cuKernelSetAttributX\0"))


def remove_cublas_symbol(folder):
    library = folder / "libcublas.so.13"
    library.write_bytes(library.read_bytes().replace(b"\0cublasGemmEx_64\0", b"\0cublasGemmEx_65\0"))


def change_nothing(folder):
    pass


@pytest.mark.parametrize(
    "change,variables,name,reason",
    [
        (spoil_driver, {}, "NVIDIA driver", "there is no NVIDIA driver ("),
        (change_nothing, {"FAKE_CUDA_VERSION": "11080"}, "NVIDIA driver", "is made for CUDA 11.8; 12.1 or newer is needed"),
        (remove_driver_symbol, {}, "NVIDIA driver", "made for CUDA 13.0, has no function cuKernelSetAttribute"),
        (change_nothing, {"FAKE_CUDA_INIT": "100"}, "GPU", "finds no device to use: CUDA_ERROR_NO_DEVICE"),
        (change_nothing, {"FAKE_CUDA_DEVICES": "0"}, "GPU", "the NVIDIA driver counts no device"),
        (change_nothing, {"FAKE_CUDA_CAPABILITY": "7.5"}, "GPU", "device 0 (NVIDIA Fake, compute capability 7.5): 8.0 or newer is needed"),
        (change_nothing, {"KINTSUGI_CUBLAS": "libabsent.so.9"}, "cuBLAS", "cuBLAS 12 or 13 cannot be opened (libabsent.so.9"),
        (remove_cublas_symbol, {}, "cuBLAS", "libcublas.so.13 has no function cublasGemmEx_64"),
    ],
)
def test_what_is_missing_is_said(program, fakes, change, variables, name, reason):
    change(fakes)
    environment = {"LD_LIBRARY_PATH": str(fakes), **variables}
    cuda = engine(program, environment)
    assert not cuda["available"] and cuda["reason"]
    if has_device_code(program):
        assert reason in cuda["reason"]
    (missing,) = [r for r in cuda["requirements"] if not r["met"] and r["name"] != "device code"]
    assert missing["name"] == name and reason in missing["reason"]
    findings = program.ok("doctor", "--json", environment=environment).json()["findings"]
    (finding,) = [finding for finding in findings if finding["name"] == name]
    assert finding["status"] == "missing" and reason in finding["advice"]
    assert multiplies_on_the_host(program, environment)
    message = program.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", "--engine", "cuda", environment=environment)
    assert cuda["reason"] in message


def test_a_build_without_device_code_names_the_option(program, fakes):
    """In the engine's error, in doctor and in engines; the reason is that of the configuration."""
    environment = {"LD_LIBRARY_PATH": str(fakes)}
    if has_device_code(program):
        pytest.skip("built with device code: tests/cmake/test_device_choice.py reads what one without says")
    cuda = engine(program, environment)
    assert "built without device code (KINTSUGI_DEVICE_CODE=" in cuda["reason"]
    assert "-DKINTSUGI_DEVICE_CODE=on" in cuda["reason"] or "-DKINTSUGI_NVCC=/path/to/nvcc" in cuda["reason"]
    findings = program.ok("doctor", "--json", environment=environment).json()["findings"]
    (finding,) = [finding for finding in findings if finding["name"] == "device code"]
    assert finding["status"] == "missing" and finding["advice"] == cuda["reason"]
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    assert cuda["reason"] in program.bad("gemm", "A.npy", "A.npy", "--check", "--engine", "cuda", environment=environment)


def test_all_is_there(program, fakes):
    environment = {"LD_LIBRARY_PATH": str(fakes), "FAKE_CUDA_DEVICES": "2", "FAKE_CUDA_CAPABILITY": "9.0"}
    cuda = engine(program, environment)
    met = {requirement["name"]: requirement["details"] for requirement in cuda["requirements"] if requirement["met"]}
    assert met["NVIDIA driver"] == "for CUDA 13.0" and met["cuBLAS"] == "libcublas.so.13"
    gpus = [f"device {number} (NVIDIA Fake, compute capability 9.0)" for number in range(2)]
    assert [r["details"] for r in cuda["requirements"] if r["name"] == "GPU"] == gpus
    assert cuda["available"] == has_device_code(program)
    if cuda["available"]:
        assert cuda["details"] == "NVIDIA Fake, compute capability 9.0; driver for CUDA 13.0; libcublas.so.13; expected times not measured"
    assert multiplies_on_the_host(program, environment)


def test_every_device_says_what_it_lacks(program, fakes):
    environment = {"LD_LIBRARY_PATH": str(fakes), "FAKE_CUDA_DEVICES": "2", "FAKE_CUDA_CAPABILITY": "9.0,7.5"}
    cuda = engine(program, environment)
    assert cuda["available"] == has_device_code(program)
    lack = "device 1 (NVIDIA Fake, compute capability 7.5): 8.0 or newer is needed"
    assert [r["reason"] for r in cuda["requirements"] if r["name"] == "GPU"] == ["", lack]
    findings = program.ok("doctor", "--json", environment=environment).json()["findings"]
    gpus = [(finding["status"], finding["advice"]) for finding in findings if finding["name"] == "GPU"]
    assert gpus == [("ok", ""), ("missing", lack)]


def test_a_copy_of_cublas_is_named(program, fakes):
    copy = fakes / "libblas-of-another-name.so"
    (fakes / "libcublas.so.13").rename(copy)
    environment = {"LD_LIBRARY_PATH": str(fakes), "KINTSUGI_CUBLAS": str(copy)}
    (found,) = [r for r in engine(program, environment)["requirements"] if r["name"] == "cuBLAS"]
    assert found["met"] and found["details"] == str(copy)
