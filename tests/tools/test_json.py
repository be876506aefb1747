"""Every JSON output against its schema, with no member that the schema does not name."""

import copy
import json

import jsonschema
import numpy
import pytest
from conftest import schema

NAMES = ["gemm", "plan", "report", "schemes", "engines", "settings", "doctor", "generate", "run"]


def closed(node):
    """The schema with additionalProperties false wherever it leaves that open."""
    if isinstance(node, dict):
        node = {key: closed(value) for key, value in node.items()}
        if "properties" in node:
            node.setdefault("additionalProperties", False)
    elif isinstance(node, list):
        node = [closed(value) for value in node]
    return node


# Major versions above 1.
VERSIONS = {"plan": 3, "report": 2, "gemm": 2, "explain": 2, "schemes": 2}


def accept(document, name):
    text = schema(name)
    jsonschema.Draft7Validator.check_schema(text)
    jsonschema.Draft7Validator(closed(text)).validate(document)
    assert document["format"] == f"kintsugi.{name}" and document["format_version"] == VERSIONS.get(name, 1)


@pytest.fixture
def operands(program, random):
    for name in ("A.npy", "B.npy"):
        program.save(name, random.standard_normal((24, 24)).astype("f4"))
    return program


def test_every_name_has_a_schema():
    from conftest import SOURCE

    schemas = {path.name[: -len(".schema.json")] for path in (SOURCE / "docs" / "schema").glob("*.schema.json")}
    assert set(NAMES) <= schemas


@pytest.mark.parametrize("command", ["schemes", "engines", "settings", "doctor"])
def test_listings(program, command):
    document = program.ok(command, "--json").json()
    accept(document, command)
    # Listings state componentwise bounds; one of the Frobenius norm would be no promise for an element.
    assert "frobenius" not in json.dumps(document)


def test_generate(program):
    document = program.ok("generate", "phi:2", "3x4", "-o", "A.npy", "--side", "b", "--seed", "7", "--json").json()
    accept(document, "generate")
    expected = {"file": "A.npy", "rows": 3, "columns": 4, "type": "float32", "order": "c"}
    assert document["matrix"] == expected and document["seed"] == 7


def test_calibrate_the_cpu(program):
    document = program.ok("calibrate", "--engine", "cpu", "--quick", "-o", "profile.json", "--json").json()
    validator = jsonschema.Draft7Validator
    validator(schema("calibration")).validate(document)
    validator(closed(schema("profile"))).validate(document["profile"])
    assert json.loads((program.folder / "profile.json").read_text()) == document["profile"]
    assert {"one.native", "all.native"} >= {fit["kind"] for fit in document["profile"]["fits"] if "native" in fit["kind"]}


def test_run(program):
    for flags, library in ((["--blas"], "libkintsugi_blas.so"), ([], "libkintsugi_cublas.so")):
        document = program.ok("run", *flags, "--json", "--", "python3", "-c", "pass").json()
        accept(document, "run")
        assert library in document["environment"]["LD_PRELOAD"].split(":")[0]


@pytest.mark.parametrize(
    "flags",
    [
        ["-o", "C.npy"],
        ["--check"],
        ["--explain"],
        ["--explain", "--policy", "emulate"],
        ["--explain", "--scheme", "fp16x3-wide", "--check", "--compare", "fp16,native,markidis,fp16x3"],
        ["--check", "--type", "fp64"],
        ["--check", "--alpha", "nan"],
        ["--explain", "--alpha", "0", "--beta", "-inf", "--c", "B.npy"],
        ["--check", "--engine", "reference", "--scheme", "fp16", "--accumulator", "v100"],
    ],
)
def test_gemm(operands, flags):
    document = operands.ok("gemm", "A.npy", "B.npy", *flags, "--json").json()
    accept(document, "gemm")
    for row in document["rows"]:
        assert ("plan" in row) == ("report" in row) == ("--explain" in flags)
        if "plan" in row:
            accept(row["plan"], "plan")
            accept(row["report"], "report")
        assert (row["errors"] is not None) == ("--check" in flags)


def test_rows_of_compare(operands):
    schemes = ["fp16", "native", "markidis"]
    flags = ["--scheme", "fp16x3", "--check", "--compare", ",".join(schemes), "--json"]
    rows = operands.ok("gemm", "A.npy", "B.npy", *flags).json()["rows"]
    assert [row["scheme"] for row in rows] == ["fp16x3", *schemes]
    for row in rows:
        assert (row["baseline"] is None) == (row["scheme"] == "native")
        assert (row["bound"] is None) == (row["scheme"] == "native")
        assert row["time"]["seconds"] > 0 and row["time"]["runs"] >= 1
    assert rows[2]["errors"]["le_gemm_max_error"] == 0, "the native result against itself"


def test_an_empty_product_ran_nothing(program):
    program.save("A.npy", numpy.zeros((2, 0), "f4"))
    program.save("B.npy", numpy.zeros((0, 2), "f4"))
    document = program.ok("gemm", "A.npy", "B.npy", "--explain", "--check", "--json").json()
    accept(document, "gemm")
    assert document["rows"][0]["scheme"] == "none"


def test_other_major_versions_are_refused(operands):
    for name, words in [("schemes", ["schemes"]), ("gemm", ["gemm", "A.npy", "B.npy", "--check"])]:
        document = operands.ok(*words, "--json").json()
        for version in (0, VERSIONS.get(name, 1) + 1, "1"):
            changed = copy.deepcopy(document)
            changed["format_version"] = version
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(changed, schema(name))


def test_the_schema_sees_a_missing_member(operands):
    document = operands.ok("gemm", "A.npy", "B.npy", "--check", "--json").json()
    del document["rows"][0]["errors"]["max_ulp"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema("gemm"))
