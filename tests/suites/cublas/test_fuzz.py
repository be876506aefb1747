"""The device suites over the fakes: the fuzzer passes where cuBLAS computes, and finds what is not computed."""

import importlib.machinery
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

FOLDER = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["TESTED_BUILD"])
FAKES = BUILD / "tests/fakes"


def fuzz(*words, script="fuzz", preload=""):
    if os.environ.get("TESTED_SANITIZED") == "1" or not os.environ.get("TESTED_CUBLAS"):
        pytest.skip("needs the drop-in for cuBLAS, and the sanitizers' run-time must be loaded first")
    loaded = {"LD_PRELOAD": f"{FAKES}/libcuda.so.1 {FAKES}/libcublas.so.13 {preload}", "LD_LIBRARY_PATH": str(FAKES),
              "FAKE_CUDA_MULTIPLY": "1", "FAKE_CUDA_NAME": "NVIDIA H200", "KINTSUGI_CUBLAS": "libcublas.so.13"}
    result = subprocess.run([sys.executable, FOLDER / script, "--build", BUILD, *words], env=os.environ | loaded,
                            capture_output=True, text=True, timeout=600)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    document = json.loads(result.stdout)
    assert document["passed"] == (result.returncode == 0)
    return document


def test_forwarded_calls_pass():
    document = fuzz("--policy", "native", "--calls", "700", "--seed", "4")
    assert document["passed"] and document["products"] > 500 and document["wrong_arguments"] > 70
    assert abs(document["microseconds_of_a_forwarded_call"]) < 1000
    assert document["report"]["emulated"] == 0 and len(document["report"]["native"]) == 51


@pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(), reason="built without device code")
def test_products_that_are_not_computed_are_found():
    """Kernels of the fake device compute nothing."""
    document = fuzz("--policy", "emulate", "--calls", "60")
    assert not document["passed"] and document["report"]["emulated"] > 10
    assert "times the bound; cuBLAS: right" in document["failures"][0]


@pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(), reason="built without device code")
def test_epilogues():
    """Products that reach Kintsugi are computed on the host; without that, by kernels of the fake device, which compute nothing."""
    document = fuzz("--calls", "600", "--seconds", "300", script="epilogues", preload=BUILD / "tests/libcublas_host_engine.so")
    assert document["passed"], document["failures"]
    assert document["report"]["emulated"] > 350 and document["report"]["failed"] == 0
    assert {name.split()[1] for name in document["statuses"] if name.startswith("S ") and name.endswith(" 0")} > {"GELU_AUX_BIAS", "DRELU_BGRAD", "BGRADA"}
    document = fuzz("--calls", "100", script="epilogues")
    assert not document["passed"] and "times the bound" in document["failures"][0]


@pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(), reason="built without device code")
def test_vectors():
    document = fuzz("--calls", "300", "--seed", "4", "--seconds", "300", script="vectors", preload=BUILD / "tests/libcublas_host_engine.so")
    assert document["passed"], document["failures"]
    assert document["report"]["emulated"] > 80 and document["wrong_arguments"] > 20 and document["other_bits_than_cublas"] > 50
    document = fuzz("--calls", "100", script="vectors")
    assert not document["passed"] and "times half a unit" in document["failures"][0]


@pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(), reason="built without device code")
def test_dumps_are_replayed_and_reports_are_whole():
    document = fuzz("--parts", "dumps", script="features", preload=BUILD / "tests/libcublas_host_engine.so")
    assert document["passed"] and document["dumps"]["dumps"] > 5, document["failures"]
    document = fuzz("--parts", "dumps", script="features")
    assert not document["passed"] and "times the bound" in document["failures"][0]


def test_level3_calls_pass():
    document = fuzz("--policy", "native", "--calls", "200", "--seconds", "300", "--seed", "4", script="level3")
    assert document["passed"] and document["calls"] > 100 and document["wrong_arguments"] > 10
    assert document["report"]["emulated"] == 0 and document["other_bits_than_cublas"] == 0


@pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(), reason="built without device code")
def test_level3_products_that_are_not_computed_are_found():
    document = fuzz("--policy", "emulate", "--calls", "60", script="level3")
    assert not document["passed"] and document["report"]["emulated"] > 10
    assert any("times the bound" in failure and failure.endswith("cuBLAS: right") for failure in document["failures"])


@pytest.mark.parametrize("script", ["fuzz", "pytorch", "cupy_products", "level3", "linalg", "jax_products", "ways_in", "cholmod", "graphs", "epilogues", "vectors", "features", "beside"])
def test_help_has_an_example(script):
    text = subprocess.run([sys.executable, FOLDER / script, "--help"], capture_output=True, text=True, check=True).stdout
    assert f"example: tests/suites/cublas/{script} " in text


def test_a_missing_program_is_named(tmp_path):
    result = subprocess.run([sys.executable, FOLDER / "cholmod", "--build", tmp_path], capture_output=True, text=True)
    assert result.returncode == 1 and "programs/make_cholmod builds it" in result.stderr
    help_text = subprocess.run([FOLDER / "programs/make_cholmod", "--help"], capture_output=True, text=True, check=True).stdout
    assert "cholmod_l_demo" in help_text


def module_of(script):
    loader = importlib.machinery.SourceFileLoader(script, str(FOLDER / script))
    sys.path.insert(0, str(FOLDER))
    module = types.ModuleType(script)
    loader.exec_module(module)
    return module


def test_losses_farther_from_fp64_than_cublas_are_found():
    check, exact = module_of("pytorch").check_training, {"model": [4.0, 2.0, 1.0]}
    stocks = [{"model": [4.0, 2.0, 1.001]}, {"model": [4.0, 1.998, 1.0]}]
    failures, distances = check(exact, stocks, {"model": [4.0, 2.0, 0.9995]})
    assert not failures and distances["model"]["cublas_from_fp64"] == pytest.approx(1e-3)
    assert "differ from those of FP64" in check(exact, stocks, {"model": [4.0, 2.0, 1.002]})[0][0]
    assert "the loss went from" in check(exact, [{"model": [4.0, 4.0]}], {"model": [4.0, 3.9]})[0][-1]


def test_the_cube_of_the_sparse_matrix(tmp_path):
    """Every point has its diagonal element, and every pair of neighbours one element below it."""
    module = module_of("cholmod")
    for is_complex, words in ((False, 3), (True, 4)):
        module.write_laplacian(tmp_path / "cube.mtx", 3, is_complex)
        lines = (tmp_path / "cube.mtx").read_text().splitlines()
        assert lines[1] == "27 27 81" and len(lines) == 2 + 81 and all(len(line.split()) == words for line in lines[2:])
        places = {tuple(map(int, line.split()[:2])) for line in lines[2:]}
        assert len(places) == 81 and all(row - column in (0, 1, 3, 9) for row, column in places)
