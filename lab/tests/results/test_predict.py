"""kintsugi-lab predict: speeds that published rates predict, and the page of them."""

import json
import os
import pathlib

import pytest
from test_json import accept

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
RESULTS = SOURCE / "lab" / "results"
CARDS = json.loads((SOURCE / "src/engines/cuda/arch/cards.json").read_text())["cards"]
PRODUCTS = {"native FP32": ("fp32", 1), "3 fp16": ("fp16", 3), "4 fp16": ("fp16", 4), "3 tf32": ("tf32", 3), "6 bf16": ("bf16", 6),
            "8 int8": ("int8", 8), "66 fp16, FP64": ("fp16", 66), "15 int8, FP64": ("int8", 15)}


@pytest.fixture
def predictions(program):
    result = program("predict", "--json")
    assert result.status == 0, result.stderr
    document = json.loads(result.stdout)
    accept(document, "predictions")
    return document


def test_the_page_is_the_programs(program):
    result = program("predict", "-o", "predictions.svg", "--markdown", "predictions.md")
    assert result.status == 0, result.stderr
    for name in ("predictions.svg", "predictions.md"):
        assert (program.folder / name).read_text() == (RESULTS / name).read_text()


# By a profile of its own a device has its own speeds; two devices that differ in memory alone predict one another.
def test_measured_devices_predict_one_another(predictions):
    speeds = {chip["name"]: chip["speeds"] for chip in predictions["chips"]}
    for error in predictions["errors"]:
        if error["device"] == "NVIDIA H200":
            assert error["measured"] == pytest.approx(speeds["NVIDIA H200"][error["method"]])
    assert predictions["largest_error"] == max(abs(error["predicted"] / error["measured"] - 1) for error in predictions["errors"])
    assert 0 < predictions["largest_error"] < 0.2


# 15 products of int8 cannot be faster than the matrix unit, nor FP32 products than their units.
def test_no_speed_is_above_the_published_rate(predictions):
    cards = {name: card for card in CARDS for name in card["names"]}
    checked = 0
    for chip in predictions["chips"]:
        for method, (unit, products) in PRODUCTS.items():
            rate = cards.get(chip["name"], {"tflops": {}})["tflops"].get(unit)
            if rate is None:
                assert chip["name"] not in cards or chip["speeds"][method] is None
                continue
            assert chip["speeds"][method] < rate / products
            checked += 1
    assert checked > 60


# GeForce halves fp16 with FP32 accumulation: FP32 stays native. FP64 gains an order of magnitude.
def test_geforce_gains_in_fp64_alone(predictions):
    geforce = [chip["speeds"] for chip in predictions["chips"] if "GeForce" in chip["name"]]
    assert len(geforce) == 3
    for speeds in geforce:
        assert speeds["3 fp16"] < speeds["native FP32"] and speeds["15 int8, FP64"] > 10 * speeds["native FP64"]


def test_small_products_are_bounded_by_memory(program):
    small, large = (json.loads(program("predict", "--json", "--n", n).stdout)["chips"] for n in ("256", "8192"))
    for one, other in zip(small, large):
        assert one["speeds"]["3 fp16"] < 0.6 * other["speeds"]["3 fp16"]
        assert one["speeds"]["native FP32"] == other["speeds"]["native FP32"]
