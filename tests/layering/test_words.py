"""The old private vocabulary is gone."""
import importlib.machinery
import importlib.util
import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def load_script():
    loader = importlib.machinery.SourceFileLoader("words", str(SOURCE / "scripts" / "words"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("words", loader))
    loader.exec_module(module)
    return module


words = load_script()


def test_no_old_word_is_written():
    assert not list(words.found_words())


@pytest.mark.parametrize("text, found", [("// A rung of the ladder; max_rungs, walked, a sidewalk.", ["rung", "ladder", "rungs"]),
                                         ("const int plain_product = 0;  // a sum that leaves the unit",
                                          ["plain product", "leaves the unit"]),
                                         ("// a block, the end of a range, std::span", [])])
def test_old_words_are_found(tmp_path, monkeypatch, text, found):
    (tmp_path / "a.cpp").write_text(text + "\n")
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "tracked_files", lambda: ["a.cpp"])
    assert sorted(line.split(": ")[1] for line in words.found_words()) == sorted(found)


def test_exceptions_are_needed():
    for name, pattern in words.EXCEPTIONS.items():
        assert re.search(pattern, (SOURCE / name).read_text()), f"{name} has no {pattern}: take it off the exceptions"
