"""kintsugi doctor -- PROGRAM: which BLAS and cuBLAS a program loads, and which of its calls the drop-ins reach."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not {"TESTED_BLAS", "TESTED_CUBLAS", "TESTED_CC"} <= set(os.environ), reason="built without the drop-ins")

# Libraries whose functions no test calls.
SOURCES = {
    "libfast.so": 'const char fast_text[] = "OpenBLAS 0.3.99 "; int dgemm_(void) { return 1; } int cblas_sgemm(void) { return 1; }',
    "libother.so": "int dgemm_64_(void) { return 1; }",
    "libcublas.so.13": "int cublasDgemm_v2(void) { return 1; }",
    "libplugin.so": "int dgemm_(void); int plugin(void) { return dgemm_(); }",
    # As MKL and FlexiBLAS: one library with the names, which has them from another, and a part without them.
    "librt.so": """#include <dlfcn.h>
                   int dgemm_(void) { return 1; }
                   __attribute__((constructor)) void load(void) {
                     dlsym(dlopen("./libfast.so", RTLD_NOW), "dgemm_"), dlopen("./libinside.so", RTLD_NOW); }""",
    "libinside.so": 'const char inside[] = "OpenBLAS warning: none"; static int dgemm_(void) { return 1; } int f(void) { return dgemm_(); }',
}
NEEDED = {"libplugin.so": ["libfast.so"]}

MAIN = "#include <dlfcn.h>\n#include <stdio.h>\n%s\nint main(int count, char** words) { puts(\"its output\"); %s return 0; }"


@pytest.fixture
def compiled(program):
    """compiled(declarations, statements, libraries...) returns the program."""
    def compile(*words):
        subprocess.run([os.environ["TESTED_CC"], *words], cwd=program.folder, check=True)

    def make(declarations, statements, *libraries, flags=()):
        for name in libraries:
            for part in [*NEEDED.get(name, []), name]:
                (program.folder / "part.c").write_text(SOURCES[part])
                needed = [f"-l:{other}" for other in NEEDED.get(part, [])]
                compile("-shared", "-fPIC", "-Wl,-z,now", "part.c", "-o", part, "-L.", "-Wl,-rpath,$ORIGIN", *needed)
        (program.folder / "main.c").write_text(MAIN % (declarations, statements))
        linked = [f"-l:{name}" for name in libraries] if "dlopen" not in statements else []
        compile("main.c", "-o", "main", *flags, "-L.", "-Wl,-rpath,$ORIGIN", *linked, "-ldl")
        return "./main"

    return make


@pytest.fixture
def examine(program, validate):
    """examine(words...) returns the findings about a program as a list of (name, status, detail, advice)."""
    def run(*words, environment=None):
        result = program("doctor", "--json", "--", *words, environment=environment)
        assert result.status == 0, result.stderr
        validate(result.json(), "doctor")
        assert result.json()["program"] == [str(word) for word in words]
        return [tuple(finding[key] for key in ("name", "status", "detail", "advice")) for finding in result.json()["findings"]]

    return run


def test_a_linked_blas_is_reached(program, compiled, examine):
    """Lazily bound or not, called or not."""
    calls = "if (count > 9) return dgemm_() + cblas_sgemm();"
    for flags in (["-Wl,-z,lazy"], ["-Wl,-z,now"]):
        main = compiled("int dgemm_(void), cblas_sgemm(void);", calls, "libfast.so", flags=flags)
        ended, blas, reached = examine(main, environment={"KINTSUGI_POLICY": "emulate", "KINTSUGI_ENGINE": "nonsense"})
        assert ended[:3] == ("program", "ok", "ended with status 0")
        assert blas[:3] == ("BLAS", "ok", f"{program.folder.resolve()}/libfast.so: OpenBLAS 0.3.99, loaded by main")
        assert reached[:3] == ("calls", "ok", "2 names of BLAS, from main: kintsugi run --blas reaches them")
    text = program("doctor", "--", main)
    assert text.stderr == "its output\n" and "its output" not in text.stdout and "OpenBLAS 0.3.99" in text.stdout


@pytest.mark.parametrize("name, library, function, advice", [
    ("BLAS", "libfast.so", "dgemm_", "libkintsugi_blas_audit.so beside kintsugi run --blas"),
    ("BLAS", "libother.so", "dgemm_64_", "libkintsugi_blas_audit.so beside kintsugi run --blas"),
    ("cuBLAS", "libcublas.so.13", "cublasDgemm_v2", "kintsugi run --audit")])
def test_functions_from_a_handle_are_not(compiled, examine, name, library, function, advice):
    main = compiled("", f'if (!dlsym(dlopen("./{library}", RTLD_NOW | RTLD_LOCAL), "{function}")) return 4;', library)
    _, blas, past = examine(main)
    assert blas[:2] == (name, "ok") and f"/{library}" in blas[2]
    assert past[:2] == ("calls past the drop-in", "missing") and past[2].endswith(f"{function} taken from its handle, by dlsym")
    assert advice in past[3]


def test_a_library_with_deepbind_is_not(compiled, examine):
    main = compiled("", 'if (!dlopen("./libplugin.so", RTLD_NOW | RTLD_DEEPBIND)) return 4;', "libplugin.so")
    findings = examine(main)
    (past,) = [finding for finding in findings if finding[0] == "calls past the drop-in"]
    assert "/libplugin.so: dgemm_ taken from" in past[2] and "/libfast.so by dlsym, or since it is RTLD_DEEPBIND" in past[2]
    main = compiled("", 'if (!dlopen("./libplugin.so", RTLD_NOW)) return 4;', "libplugin.so")
    assert [finding[0] for finding in examine(main)] == ["program", "BLAS", "calls"]


def test_parts_of_a_blas_pass_calls_on(program, compiled, examine):
    """Also where they are links to files of other names."""
    compiled("", "", "libinside.so")
    main = compiled("int dgemm_(void);", "if (count > 9) return dgemm_();", "librt.so", "libfast.so")
    (program.folder / "libfast.so").rename(program.folder / "libfast.so.3.2")
    (program.folder / "libfast.so").symlink_to("libfast.so.3.2")
    (_, *findings) = examine(main)
    assert [finding[:2] for finding in findings] == [("BLAS", "ok"), ("BLAS", "ok"), ("calls", "ok")]
    assert findings[0][2].endswith("/libfast.so.3.2: OpenBLAS 0.3.99, loaded by librt.so")
    assert findings[1][2].endswith("/librt.so, loaded by main"), "nobody knows its maker"


def test_a_static_blas_is_named(program, compiled, examine):
    declarations = 'const char text[] = "libblis: none"; int dgemm_(void) { return 1; }'
    main = compiled(declarations, "if (count > 9) puts(text), dgemm_();")
    _, inside = examine(main)
    assert inside[:2] == ("BLAS inside", "missing") and inside[2].endswith("/main: contains BLIS, linked statically")
    compiled("int f(void);", "if (count > 9) return f();", "libinside.so")
    _, inside = examine(main)
    assert inside[2].endswith("/libinside.so: contains OpenBLAS, linked statically")


def test_a_static_program_is_named(compiled, examine):
    main = compiled("int dgemm_(void) { return 1; }", "if (count > 9) dgemm_();", flags=["-static"])
    _, linking, inside = examine(main)
    assert linking[:2] == ("linking", "missing") and linking[2].endswith("/main has no dynamic linker")
    assert inside[2].endswith("/main: contains BLAS, linked statically")


def test_a_program_without_a_blas(compiled, examine):
    """A variable of such a name, as numba has them for functions of scipy, is none."""
    pointers = compiled("static int (*dgemm_)(void); int (*cblas_dgemm)(void);", "if (count > 9) return dgemm_() + cblas_dgemm();")
    for program in ("true", pointers):
        _, neither = examine(program)
        assert neither[:2] == ("BLAS, cuBLAS", "missing")


def test_what_a_program_starts_is_examined(compiled, examine):
    main = compiled("int dgemm_(void);", "if (count > 9) return dgemm_();", "libfast.so")
    findings = examine("sh", "-c", f"{main}; exit 3")
    assert findings[0][:3] == ("program", "failed", "ended with status 3") and [name for name, *_ in findings[1:]] == ["BLAS", "calls"]
    assert examine("sh", "-c", "kill -SEGV $$")[0][1:3] == ("failed", "signal Segmentation fault ended it")


def test_a_program_that_cannot_be_run(program):
    assert program.bad("doctor", "--", "./absent") == "./absent: cannot be run: No such file or directory"


def test_numpy(examine):
    """Two times, by which every function behind the drop-in has been found."""
    code = "import numpy, scipy.linalg; a = numpy.ones((9, 9)); [(a @ a, a @ a[0], scipy.linalg.blas.dgemm(1, a, a)) for _ in '12']"
    findings = examine(sys.executable, "-c", code)
    assert {name for name, *_ in findings} == {"program", "BLAS", "calls"} and all(finding[1] == "ok" for finding in findings)
    (calls,) = [finding for finding in findings if finding[0] == "calls"]
    assert "_multiarray_umath" in calls[2] or " more" in calls[2]
