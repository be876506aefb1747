"""Products that a program captures as child graphs, as JAX does, under the cuBLAS drop-in over the fakes, which refuse memory nodes."""

import pytest
from test_cublas_programs import LARGE, needs_device_code, program, read_report  # noqa: F401 (a fixture)


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
        run = program(*LARGE, "--graphs", "3", "--keep-graphs", policy=policy, workspace_limit="40M", report="report.json")
        assert not any(run.document["statuses"]) and len(run.real()) == 2 and len(allocations(run)) == 1
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["calls"] == 4 and problem["native_calls"] == 2
        (reason,) = (reason for reason, calls in problem["reasons"].items() if calls == 2 and "captured" in reason)
        assert "workspace_limit" in reason and str(40 << 20) in reason
        assert (reason in run.stderr) == (policy == "force")
