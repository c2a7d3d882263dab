"""The verdict on one run: corruption first, then whether it is a test at all, then bandwidth."""

from __future__ import annotations

from engine.catalogue.types import Catalogue
from engine.readers.nccl_tests import plain
from engine.readers.nccl_tests.baseline import Baselines
from engine.readers.nccl_tests.fabric import judge_nodes
from engine.readers.nccl_tests.node import judge_node
from engine.readers.nccl_tests.platform import Platform, platform_of
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.verdict import UNKNOWN, Verdict

# GPUs that share an operating system in GB200 and GB300 racks.
_TRAY = 4
# GPUs of a board of the models that are sold as one, where a sentence does not number them.
_BOARD = 8
_MOST_GPUS = 16
_BOARDS = frozenset({"A100", "A800", "H100", "H800", "H200", "H20", "B200", "B300"})


def judge(run: Run, catalogue: Catalogue) -> tuple[Verdict, Platform | None]:
    """Return the verdict on a run, and the platform by which it was judged."""
    assumed = _assume_board(run)
    if run.nodes is None and run.ranks and run.ranks > _TRAY and run.ranks % _TRAY == 0:
        model = run.setup.model or ""
        if "GB200" in model or "GB300" in model:
            run.setup.said_nodes = run.ranks // _TRAY
    several = (run.nodes or 1) > 1
    # What a ring carries between nodes, it carries between the GPUs of a node as well.
    inside = run.per_node != 1
    platform = platform_of(
        run.setup, catalogue, max(run.peak or 0.0, run.busbw or 0.0) if inside else 0.0
    )
    verdict = _verdict(run, platform, Baselines(catalogue), several=several)
    if verdict.verdict == UNKNOWN and run.collapsed:
        verdict = plain.collapse(verdict, several=several or (run.ranks or 0) > _MOST_GPUS)
    if assumed and platform is not None:
        verdict.says.append(f"{_BOARD} GPUs on one node are assumed: the text does not say.")
    return verdict, platform


def _assume_board(run: Run) -> bool:
    """Take figures in a sentence for those of a whole board; whether that was done."""
    setup = run.setup
    if run.rows or setup.models or not run.figures.any or setup.said_model not in _BOARDS:
        return False
    if setup.said_form in {"pcie", "nvl"} or setup.ranks or setup.nodes or setup.nics.gbit:
        return False
    setup.said_per_node = _BOARD
    return True


def _verdict(
    run: Run, platform: Platform | None, baselines: Baselines, *, several: bool
) -> Verdict:
    if run.wrong or run.out_of_bounds:
        return plain.corruption(run)
    if run.ranks == 1:
        return plain.one_rank(run)
    if run.busbw is None or (run.busbw == 0 and not run.rows):
        return plain.average_only(run)
    if run.latency_bound:
        return plain.latency(run)
    network = run.setup.nics.gbit or run.setup.socket
    if several or (run.nodes is None and network):
        return judge_nodes(run, run.busbw, platform, baselines)
    return judge_node(run, run.busbw, platform, baselines)
