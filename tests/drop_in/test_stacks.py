"""Calls in threads with small stacks: no call takes 8 KiB beyond what the same call of OpenBLAS takes."""

import json

import pytest
from conftest import CALLS, SANITIZED, Preloaded
from test_programs import needs_shared_blas

OPENBLAS = "libopenblas.so.0"
SITES = {"format": "kintsugi.sites", "format_version": 1, "frames": 8, "error_samples": 2, "sites": {"a:b@0x1": {"scheme": "fp16"}}}
SETTINGS = [{"policy": "native"}, {"policy": "auto"}, {"policy": "emulate"}, {"accuracy": "exact"}, {"accuracy": "reproducible"},
            {"accuracy": "1e-9", "explain": "1"}, {"config": "settings"}, {"sites": "sites.json", "report": "report.json"}]


def bytes_of_calls(result):
    return {(name, order): int(taken) for name, order, taken in map(str.split, result.stdout.splitlines())}


@needs_shared_blas
class TestStacks:
    @pytest.fixture(scope="class")
    def openblas(self, tmp_path_factory):
        """Bytes that OpenBLAS takes: the program's names are bound to it before the drop-in."""
        if SANITIZED:
            pytest.skip("frames of the sanitizers are larger")
        alone = Preloaded(tmp_path_factory.mktemp("openblas"))
        alone.environment["LD_PRELOAD"] = OPENBLAS
        result = alone.ok(CALLS, "stacks", preload=False)
        if "cannot be preloaded" in result.stderr:
            pytest.skip("no OpenBLAS of the system")
        return bytes_of_calls(result)

    @pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings.values()))
    def test_no_call_takes_8_kib_more_than_openblas(self, preloaded, openblas, settings):
        (preloaded.folder / "settings").write_text("policy = emulate\naccuracy = reproducible\n")
        (preloaded.folder / "sites.json").write_text(json.dumps(SITES))
        preloaded.environment["KINTSUGI_CONFIG"] = settings.get("config", "")
        settings = {name: value for name, value in settings.items() if name != "config"}
        taken = bytes_of_calls(preloaded.ok(CALLS, "stacks", preload=False, **settings))
        assert taken.keys() == openblas.keys()
        assert [] == [(call, openblas[call], taken[call]) for call in taken if taken[call] > openblas[call] + 8192]

    @pytest.mark.parametrize("settings", [{"policy": "emulate"}, {"policy": "force"}, {"accuracy": "exact"}, {"accuracy": "reproducible"}])
    def test_emulated_calls_run_in_threads_of_32_kib(self, preloaded, settings):
        preloaded.ok(CALLS, "stacks", "--bytes", 32768, preload=False, **settings)

    def test_forwarded_calls_run_where_openblas_does(self, preloaded, openblas):
        own = 16384  # the thread's record and variables, and 8 KiB
        preloaded.ok(CALLS, "stacks", "--bytes", max(32768, (max(openblas.values()) + own) // 4096 * 4096), preload=False, policy="native")

    def test_loops_need_no_large_stacks_of_openmp_threads(self, preloaded):
        preloaded.environment |= {"OMP_STACKSIZE": "32K", "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
        preloaded.ok(CALLS, "stacks", "--bytes", 1 << 20, preload=False, accuracy="exact")
