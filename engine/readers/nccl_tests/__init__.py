"""Reader of nccl-tests and rccl-tests: tables, JSON output, command lines and figures in prose."""

from engine.readers.nccl_tests.document import NCCL_TESTS_JSON
from engine.readers.nccl_tests.reader import NcclTestsReader

__all__ = ["NCCL_TESTS_JSON", "NcclTestsReader"]
