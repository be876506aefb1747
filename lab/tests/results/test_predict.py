"""lab/studies/predict.py: speeds that published numbers predict, and their table in the log."""

import importlib.util
import json
import os
import pathlib

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
LOG = SOURCE / "lab" / "results" / "log" / "2026-11-30-predicted-profiles.md"


def load():
    spec = importlib.util.spec_from_file_location("predict", SOURCE / "lab" / "studies" / "predict.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


predict = load()
MODEL = predict.Model(json.loads((predict.ARCH / "hopper" / "nvidia-h200.json").read_text()))


def test_the_log_has_the_table():
    assert predict.table(MODEL, 8192) in LOG.read_text()


# 15 products of int8 cannot be faster than the matrix unit, nor FP32 products than their units.
@pytest.mark.parametrize("name", predict.cards())
def test_no_step_is_faster_than_published(name):
    card = predict.cards()[name]
    native32, fp16x3, native64, ozaki2 = MODEL.row(card, 8192)
    assert native32 < card["tflops"]["fp32"] and fp16x3 < card["tflops"]["fp16"] / 3 and native64 < predict.fp64_rate(card)
    assert ozaki2 is None or ozaki2 < card["tflops"]["int8"] / predict.MODULI


# GeForce halves fp16 with FP32 accumulation: FP32 stays native. FP64 gains an order of magnitude.
@pytest.mark.parametrize("name", [name for name in predict.cards() if "GeForce" in name])
def test_geforce_gains_in_fp64_alone(name):
    native32, fp16x3, native64, ozaki2 = MODEL.row(predict.cards()[name], 8192)
    assert fp16x3 < native32 and ozaki2 > 10 * native64


def test_few_fp64_units_limit_splits_and_recombination():
    card = predict.cards()["NVIDIA GeForce RTX 4090"]
    more_units = card | {"tflops": card["tflops"] | {"fp64": 100 * card["tflops"]["fp64"]}}
    assert MODEL.ozaki2(more_units, 1024) < MODEL.ozaki2(card, 1024)
