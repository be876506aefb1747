"""The old private vocabulary only shrinks."""
import importlib.machinery
import importlib.util
import json
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def load_script():
    loader = importlib.machinery.SourceFileLoader("words", str(SOURCE / "scripts" / "words"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("words", loader))
    loader.exec_module(module)
    return module


words = load_script()


def test_no_old_word_is_written_anew():
    limits = json.loads(words.LIMITS.read_text())
    assert limits.keys() == words.WORDS.keys()
    above = {word: (count, limits[word]) for word, count in words.counts().items() if count > limits[word]}
    assert not above, f"{above}: scripts/words says what to write; once there are fewer, scripts/words --write"


def test_words_are_counted(tmp_path, monkeypatch):
    file = tmp_path / "a.cpp"
    file.write_text("// A rung of the ladder; max_rungs, walked, a sidewalk.\n")
    monkeypatch.setattr(words, "tracked_files", lambda: [file])
    found = words.counts()
    assert (found["rungs?"], found["ladders?"], found["walks?"]) == (2, 1, 0)
