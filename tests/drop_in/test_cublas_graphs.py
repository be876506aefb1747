"""Products that a program captures as child graphs, as JAX does, under the cuBLAS drop-in over the fakes, which refuse memory nodes."""

import pytest
from test_cublas_programs import LARGE, needs_device_code, program, read_report  # noqa: F401 (a fixture)


LARGER = ["--product", "sgemm", "2048", "1536", "1536"]


def allocations(run):
    return [event for event in run.document["events"] if event.startswith("cuMemAlloc ")]


@needs_device_code
class TestGraphs:
    def test_captured_products_are_child_graphs(self, program):
        run = program(*LARGE, "--graphs", "3", "--keep-graphs")
        assert not any(run.document["statuses"]) and not run.real() and run.stderr == ""
        assert run.document["events"].count("cuGraphAddChildGraphNode") == 6
        assert len(allocations(run)) == 3, "graphs that exist at once do not share their workspaces"

    def test_destroyed_graphs_leave_their_workspace_to_later_ones(self, program):
        run = program(*LARGE, *LARGE, "--graphs", "200")
        assert not any(run.document["statuses"]) and not run.real()
        assert len(allocations(run)) == 1

    @pytest.mark.parametrize("policy", ["auto", "force"])
    def test_beyond_the_limit_calls_are_forwarded(self, program, policy):
        run = program(*LARGE, *LARGER, "--graphs", "3", "--keep-graphs", policy=policy, workspace_limit="40M", report="report.json")
        assert not any(run.document["statuses"]) and len(run.real()) == 3
        assert len(allocations(run)) == 3, "a problem that a graph has emulated stays emulated: JAX updates its graphs by new captures"
        larger, kept = sorted(read_report(program.folder / "report.json")["problems"], key=lambda problem: -problem["m"])
        assert kept["calls"] == 4 and kept["native_calls"] == 0
        assert larger["calls"] == 4 and larger["native_calls"] == 3
        (reason,) = (reason for reason in larger["reasons"] if "workspace_limit" in reason)
        assert larger["reasons"][reason] == 1 and "captured" in reason and str(40 << 20) in reason
        assert (reason in run.stderr) == (policy == "force")
        (kept_reason,) = (reason for reason in larger["reasons"] if "keep their kernels" in reason)
        assert larger["reasons"][kept_reason] == 2
