"""Large traces made up for the benchmarks: a training loop as Kineto and as nsys would write it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

_KERNELS = (
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16",
    (
        "void at::native::vectorized_elementwise_kernel<4, "
        "at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, "
        "at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)"
    ),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
        "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
        "float*)"
    ),
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false> >",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
_OPERATORS = ("aten::linear", "aten::addmm", "aten::add_", "aten::layer_norm", "aten::copy_")
_PER_STEP = 400
_T0_US = 4_458_676_000_000.0
_EVENT = """
  {
    "ph": "X", "cat": "cpu_op", "name": "%(op)s", "pid": 2910249, "tid": 2910249,
    "ts": %(t0).3f, "dur": 14.250,
    "args": {
      "External id": %(id)d,"Record function id": 0, "Sequence number": %(id)d, \
"Fwd thread id": 0, "Ev Idx": %(id)d
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 2910249, "tid": 2910249,
    "ts": %(t1).3f, "dur": 5.125,
    "args": {
      "External id": %(id)d, "cbid": 211, "correlation": %(id)d
    }
  },
  {
    "ph": "s", "id": %(id)d, "pid": 2910249, "tid": 2910249, "ts": %(t1).3f,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "%(kernel)s", "pid": 0, "tid": %(stream)d,
    "ts": %(t2).3f, "dur": %(dur).3f,
    "args": {
      "External id": %(id)d,
      "queued": 0, "device": 0, "context": 1,
      "stream": %(stream)d, "correlation": %(id)d,
      "registers per thread": 32,
      "shared memory": 0,
      "blocks per SM": 18.962963,
      "warps per SM": 75.851852,
      "grid": [2048, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %%": 100
    }
  },
  {
    "ph": "f", "id": %(id)d, "pid": 0, "tid": %(stream)d, "ts": %(t2).3f,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },"""
_STEP = """
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 2910249, "tid": 2910249,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": 1,"Record function id": 0, "Ev Idx": 1
    }
  },"""
_HEAD = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84942979072
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "traceEvents": ["""
_TAIL = """
  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": %.3f
  }
  ],
  "traceName": "bench.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711964646000000000
}
"""


def write_kineto(path: Path, size: float) -> None:
    """Write a Kineto trace of about so many bytes."""
    with path.open("w", encoding="utf-8") as out:
        written = out.write(_HEAD)
        k, at = 0, _T0_US
        while written < size:
            began = at
            for event, end in _step(k, began):
                written += out.write(event)
                at = end
            written += out.write(_STEP % (k // _PER_STEP, began, at - began))
            k += _PER_STEP
        out.write(_TAIL % at)


def _step(k: int, at: float) -> Iterator[tuple[str, float]]:
    for i in range(k, k + _PER_STEP):
        nccl = i % 20 == 19
        dur = 180.0 if nccl else 11.0 + 7.25 * (i % 9)
        text = _EVENT % {
            "op": _OPERATORS[i % len(_OPERATORS)],
            "kernel": _KERNELS[4 if nccl else i % 4],
            "id": i + 1,
            "t0": at,
            "t1": at + 4.5,
            "t2": at + 21.125,
            "dur": dur,
            "stream": 20 if nccl else 7,
        }
        at += 15.0 if nccl else dur + 2.125
        yield text, at


def write_nsys(path: Path, size: float) -> None:
    """Write an nsys export (SQLite) of about so many bytes: the tables that are read."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(_SCHEMA)
    names = [*_KERNELS, "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020", "ncclAllReduce"]
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    database.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0')")
    k, at = 0, 1_000_000_000
    while path.stat().st_size < size:
        kernels, calls, ranges = [], [], []
        for i in range(k, k + 100 * _PER_STEP):
            nccl = i % 20 == 19
            dur = 180_000 if nccl else 11_000 + 7_250 * (i % 9)
            start = at + 16_625
            stream = 20 if nccl else 7
            name = 4 if nccl else i % 4
            kernels.append(
                (start, start + dur, 0, 1, None, stream, i, _PID, name, name, None, None, None,
                 32, 2048, 1, 1, 128, 1, 1, 0, 0, 0, 0, None, None, 233472, None, None, None)
            )  # fmt: skip
            calls.append((at, at + 5_125, 0, _PID | 7, i, 5, 0, None))
            text = f"aten::linear, op_id = {i}"
            ranges.append((at - 4_500, at + 9_750, 59, None, None, None, text, _PID | 7, 0))
            at += 15_000 if nccl else dur + 2_125
        k += 100 * _PER_STEP
        ranges.append((at - 9_000_000, at, 59, None, None, None, f"step_{k}", _PID | 7, 0))
        database.executemany(f"INSERT INTO {_K}_KERNEL VALUES ({_marks(30)})", kernels)
        database.executemany(f"INSERT INTO {_K}_RUNTIME VALUES ({_marks(8)})", calls)
        database.executemany(
            "INSERT INTO NVTX_EVENTS (start, end, eventType, rangeId, category, color, text, "
            f"globalTid, domainId) VALUES ({_marks(9)})",
            ranges,
        )
        database.commit()
    database.close()


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_PID = 281476838981632
_K = "CUPTI_ACTIVITY_KIND"
# As nsys 2026.2 writes them (schema 3.25).
_SCHEMA = f"""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE {_K}_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
  registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
  blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER, sharedMemoryExecuted INTEGER,
  sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, graphNodeId INTEGER,
  graphId INTEGER);
CREATE TABLE {_K}_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
  int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER,
  floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
"""
