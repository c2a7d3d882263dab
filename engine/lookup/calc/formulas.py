"""The formulas themselves, each with its inputs in the units named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

from engine.errors import UsageError
from engine.lookup.calc.base import Calculator, Input, Values, maybe, real
from engine.lookup.model import Quantity

Worked = tuple[Sequence[Quantity], Sequence[str]]

_MFU_TOO_HIGH = "more than the peak: check tokens per second, GPUs and the peak of the data type"
_BUSBW = (
    "busbw = algbw * factor; factor = 2(n-1)/n for all_reduce, (n-1)/n for all_gather, "
    "reduce_scatter, alltoall, gather and scatter, 1 for broadcast, reduce and sendrecv; "
    "algbw = size / time"
)
_CHECKPOINT_NOTE = (
    "2 bytes a parameter are BF16 weights alone; with the state of Adam a mixed-precision "
    "checkpoint has 12 to 14 (16 is memory while training, gradients included)"
)
_CACHE_NOTE = (
    "memory is what is left for the cache: GPU memory times gpu-memory-utilization, less weights "
    "and activations; with tensor parallelism every rank holds its share of the heads"
)
_MFU_NOTE = (
    "6 FLOPs a parameter and token count forward and backward, without attention and "
    "recomputation; for mixture of experts give the active parameters"
)

# Bus over algorithm bandwidth for n ranks is a + b/n: NVIDIA/nccl-tests doc/PERFORMANCE.md.
_FACTORS: Mapping[str, tuple[int, int]] = {
    "all_reduce": (2, -2),
    "all_gather": (1, -1),
    "reduce_scatter": (1, -1),
    "alltoall": (1, -1),
    "gather": (1, -1),
    "scatter": (1, -1),
    "broadcast": (1, 0),
    "reduce": (1, 0),
    "sendrecv": (1, 0),
}
COLLECTIVES = tuple(_FACTORS)
_DTYPE_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5}
DTYPES = tuple(_DTYPE_BYTES)


def busbw_factor(collective: str, ranks: int) -> float:
    """Return bus over algorithm bandwidth for a collective over ``ranks`` ranks."""
    whole, shared = _FACTORS[collective]
    return whole + shared / ranks


def _busbw(values: Values) -> Worked:
    ranks, collective = real(values, "ranks"), str(values["collective"])
    factor = busbw_factor(collective, int(ranks))
    algbw = maybe(values, "algbw")
    size, time = maybe(values, "size"), maybe(values, "time")
    notes = []
    if algbw is not None and (size is not None or time is not None):
        raise UsageError("busbw got algbw and size or time", hint="give algbw, or size and time")
    if algbw is None:
        if size is None or time is None:
            hint = "gpuwhy calc busbw ranks=8 algbw=188.5"
            raise UsageError("busbw needs algbw, or size and time", hint=hint)
        algbw = size / time / 1e9
    if int(ranks) == 1:
        notes.append("one rank moves nothing over a link: the bus bandwidth is 0 or means nothing")
    return (
        (
            Quantity("busbw", algbw * factor, "GB/s"),
            Quantity("algbw", algbw, "GB/s"),
            Quantity("factor", factor, ""),
        ),
        notes,
    )


def _checkpoint(values: Values) -> Worked:
    size = real(values, "params") * real(values, "bytes_per_param") / 1e9
    results = [Quantity("size", size, "GB")]
    bandwidth = maybe(values, "bandwidth")
    if bandwidth:
        results.append(Quantity("time", size / bandwidth, "s"))
    return results, (_CHECKPOINT_NOTE,)


def _ridge(values: Values) -> Worked:
    peak, bandwidth = real(values, "peak"), real(values, "bandwidth")
    ridge = peak * 1e3 / bandwidth
    results = [Quantity("ridge point", ridge, "FLOP/byte")]
    intensity = maybe(values, "intensity")
    notes = []
    if intensity is not None:
        attainable = min(peak, intensity * bandwidth / 1e3)
        results.append(Quantity("attainable", attainable, "TFLOP/s"))
        results.append(Quantity("share of peak", 100 * attainable / peak, "%"))
        notes.append("memory-bound" if intensity < ridge else "compute-bound")
    return results, notes


def _gemm(values: Values) -> Worked:
    m, n, k = real(values, "m"), real(values, "n"), real(values, "k")
    each = _DTYPE_BYTES[str(values["dtype"])]
    flops, moved = 2 * m * n * k, each * (m * k + k * n + m * n)
    return (
        Quantity("arithmetic intensity", flops / moved, "FLOP/byte"),
        Quantity("work", flops / 1e9, "GFLOP"),
        Quantity("moved", moved / 1e9, "GB"),
    ), ("each matrix is read or written once: the best that caches can do",)


def _kv_cache(values: Values) -> Worked:
    each = _DTYPE_BYTES[str(values["dtype"])]
    per_token = (
        2 * real(values, "layers") * real(values, "kv_heads") * real(values, "head_dim") * each
    )
    results = [Quantity("per token", per_token / 1024, "KiB")]
    tokens, memory = maybe(values, "tokens"), maybe(values, "memory")
    if tokens is not None:
        results.append(Quantity("per request", per_token * tokens / 1e9, "GB"))
    if memory is not None:
        results.append(
            Quantity("tokens that fit", float(floor(memory * 1e9 / per_token)), "tokens")
        )
    if tokens and memory is not None:
        fit = floor(memory * 1e9 / (per_token * tokens))
        results.append(Quantity("requests that fit", float(fit), "requests"))
    return results, (_CACHE_NOTE,)


def _mfu(values: Values) -> Worked:
    params, tokens = real(values, "params"), real(values, "tokens_per_s")
    gpus, peak = real(values, "gpus"), real(values, "peak")
    achieved = 6 * params * tokens / 1e12
    return (
        Quantity("MFU", 100 * achieved / (gpus * peak), "%"),
        Quantity("achieved", achieved, "TFLOP/s"),
        Quantity("per GPU", achieved / gpus, "TFLOP/s"),
    ), (_MFU_NOTE, *((_MFU_TOO_HIGH,) if achieved > gpus * peak else ()))


_RANKS = Input(
    "ranks",
    "count",
    "GPUs that take part",
    words=("rank", "ranks", "gpus", "gpu"),
    low=1,
    high=1e6,
    whole=True,
)
_PARAMS = Input(
    "params",
    "count",
    "parameters of the model",
    low=1,
    words=("params", "parameters", "model", "weights"),
)
_PEAK = Input(
    "peak",
    "TFLOP/s",
    "dense peak of the GPU for the data type in use",
    low=1e-3,
    words=("peak", "tflops"),
)

ALL = (
    Calculator(
        "busbw",
        "bus bandwidth of a collective",
        _BUSBW,
        (
            Input(
                "algbw",
                "GB/s",
                "algorithm bandwidth",
                optional=True,
                words=("algbw", "algorithm bandwidth", "algo bw"),
            ),
            _RANKS,
            Input("collective", "word", "which collective", "all_reduce", choices=COLLECTIVES),
            Input("size", "bytes", "message size, in place of algbw", optional=True, low=1),
            Input("time", "s", "time of one collective", optional=True, low=1e-9, high=1e6),
        ),
        _busbw,
        ("NVIDIA/nccl-tests doc/PERFORMANCE.md",),
        ("busbw", "bus bandwidth", "bus bw"),
    ),
    Calculator(
        "checkpoint",
        "size of a checkpoint, and time to write it",
        "size = parameters * bytes per parameter; time = size / bandwidth",
        (
            _PARAMS,
            Input(
                "bytes_per_param",
                "count",
                "bytes kept for each parameter",
                2.0,
                low=0.125,
                high=64,
                words=("bytes per parameter", "bytes per param"),
            ),
            Input(
                "bandwidth",
                "GB/s",
                "write bandwidth of the storage",
                optional=True,
                low=1e-6,
                words=("bandwidth", "write", "storage", "at"),
            ),
        ),
        _checkpoint,
        (
            "arithmetic",
            "Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1 (16 bytes with Adam)",
        ),
        ("checkpoint", "ckpt"),
    ),
    Calculator(
        "ridge",
        "ridge point and attainable performance (roofline)",
        "ridge = peak / bandwidth; attainable = min(peak, intensity * bandwidth)",
        (
            _PEAK,
            Input(
                "bandwidth",
                "GB/s",
                "memory bandwidth of the GPU",
                low=1e-3,
                words=("bandwidth", "hbm", "memory bandwidth"),
            ),
            Input(
                "intensity",
                "FLOP/byte",
                "arithmetic intensity of the kernel",
                optional=True,
                words=("intensity", "arithmetic intensity"),
            ),
        ),
        _ridge,
        ("Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009",),
        ("ridge", "roofline", "attainable"),
    ),
    Calculator(
        "gemm",
        "arithmetic intensity of a matrix multiplication",
        "2*M*N*K / (bytes * (M*K + K*N + M*N))",
        (
            Input("m", "count", "rows of the result", low=1, whole=True),
            Input("n", "count", "columns of the result", low=1, whole=True),
            Input("k", "count", "inner dimension", low=1, whole=True),
            Input("dtype", "word", "data type of all three", "bf16", choices=DTYPES),
        ),
        _gemm,
        ("NVIDIA, Matrix Multiplication Background User's Guide",),
        ("gemm", "matmul", "matrix multiplication"),
    ),
    Calculator(
        "kv_cache",
        "size of the KV cache, and how many requests fit",
        "bytes per token = 2 * layers * kv_heads * head_dim * bytes of the data type",
        (
            Input(
                "layers",
                "count",
                "layers of the model",
                low=1,
                whole=True,
                words=("layer", "layers"),
            ),
            Input(
                "kv_heads",
                "count",
                "key-value heads of a layer",
                low=1,
                whole=True,
                words=("kv heads", "kv head", "key value heads"),
            ),
            Input(
                "head_dim",
                "count",
                "size of a head",
                128.0,
                low=1,
                whole=True,
                words=("head dim", "head size", "head dimension", "dim"),
            ),
            Input("dtype", "word", "data type of the cache", "bf16", choices=DTYPES),
            Input(
                "tokens",
                "count",
                "tokens of a request, prompt and answer",
                optional=True,
                low=1,
                words=("token", "tokens", "context", "context length"),
            ),
            Input(
                "memory",
                "GB",
                "GPU memory left for the cache",
                optional=True,
                words=("memory", "gpu memory", "cache"),
            ),
        ),
        _kv_cache,
        ("Kwon et al., PagedAttention, arXiv 2309.06180", "arithmetic over the model's shape"),
        ("kv cache", "kvcache", "kv-cache"),
    ),
    Calculator(
        "mfu",
        "model FLOPs utilisation",
        "MFU = 6 * parameters * tokens per second / (GPUs * peak)",
        (
            _PARAMS,
            Input(
                "tokens_per_s",
                "tokens/s",
                "tokens a second of the whole job",
                low=1e-6,
                words=("tokens per second", "tokens/s", "tok/s", "throughput"),
            ),
            Input("gpus", "count", "GPUs of the job", low=1, whole=True, words=("gpus", "gpu")),
            _PEAK,
        ),
        _mfu,
        (
            "Chowdhery et al., PaLM, arXiv 2204.02311, appendix B",
            "Kaplan et al., arXiv 2001.08361 (6 FLOPs a parameter and token)",
        ),
        ("mfu", "model flops utilisation", "model flops utilization"),
    ),
)
