"""docs/SETTINGS.md is what the program prints from the table of settings."""

import os
import pathlib

PAGE = pathlib.Path(os.environ["TESTED_SOURCE"]) / "docs" / "SETTINGS.md"


def test_the_page_is_that_of_the_table(program):
    printed = program.ok("settings", "--markdown").stdout
    assert PAGE.read_text() == printed, "write it again: build/kintsugi settings --markdown >docs/SETTINGS.md"


def test_every_setting_has_a_row(program):
    names = [setting["name"] for setting in program.ok("settings", "--json").json()["settings"]]
    page = PAGE.read_text()
    assert names and all(f"| `{name}` | `KINTSUGI_{name.upper()}` |" in page for name in names)


def test_the_page_does_not_depend_on_the_values_in_force(program):
    printed = program.ok("settings", "--markdown", environment={"KINTSUGI_ENGINE": "reference"}).stdout
    assert PAGE.read_text() == printed
