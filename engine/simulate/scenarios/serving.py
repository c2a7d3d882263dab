"""How an LLM server behaves: concurrency, step time, KV cache and queue in one closed model.

Clients hold a number of requests in the system at once (closed loop). From that, from the prompts
and from what the engine can do follow the running batch, the queue, latencies and throughput, so
that the metrics of a scenario agree with each other as those of a real server do. It takes Little's
law, a decode step that grows linearly with the batch, and prefill that takes its share of each
second from decode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.samples import Floats

Level = Floats | float


@dataclass(frozen=True, slots=True)
class Engine:
    """A model on its GPUs, as configured.

    Attributes:
        step_s: time of a decode step with a batch of one (s).
        per_seq_s: what each further sequence adds to a step (s).
        prefill_tps: prompt tokens a second with nothing else to do.
        kv_tokens: tokens that the KV cache holds.
        max_seqs: ``max_num_seqs``.
        max_tokens: ``max_num_batched_tokens``.
        gpus: GPUs that one engine uses (tensor parallel).
    """

    step_s: float
    per_seq_s: float
    prefill_tps: float
    kv_tokens: float
    max_seqs: int = 256
    max_tokens: int = 8192
    gpus: int = 1


# Orders of magnitude of public vLLM and MLPerf results, rounded: 8B and 32B on one H100, 70B in FP8
# on four, a mixture of experts on eight. KV tokens are free memory over bytes per token.
SMALL = Engine(0.007, 0.00003, 42_000, 430_000, gpus=1)
MEDIUM = Engine(0.019, 0.00006, 13_000, 190_000, gpus=1)
LARGE = Engine(0.016, 0.00007, 15_000, 900_000, gpus=4)
HUGE = Engine(0.022, 0.00005, 26_000, 1_400_000, max_seqs=1024, max_tokens=16384, gpus=8)


@dataclass(frozen=True, slots=True)
class Load:
    """What clients ask of one engine, and what goes wrong; each figure constant or one a scrape.

    Attributes:
        users: requests that clients keep in the system.
        prompt: mean prompt tokens.
        output: mean generated tokens.
        hit: share of prompt tokens found in the prefix cache, 0 to 1.
        slow: factor on everything the GPU does; 1 is healthy.
        host_s: time a step waits for the engine's own CPU thread (s).
        front_s: time in the front end before a request reaches the queue (s).
        preempted: preemptions for each finished request.
        deferred: requests held back for another reason than capacity (LoRA, KV transfer).
        stall_share: share of token gaps that a long prefill stretches, 0 to 1.
        stall_s: length of such a gap (s).
        aborted, failed: share of requests that end so, 0 to 1.
        rejected: requests refused at admission, a second.
    """

    users: Level = 8.0
    prompt: Level = 900.0
    output: Level = 220.0
    hit: Level = 0.3
    slow: Level = 1.0
    host_s: Level = 0.0004
    front_s: Level = 0.012
    preempted: Level = 0.0
    deferred: Level = 0.0
    stall_share: Level = 0.0
    stall_s: Level = 0.5
    aborted: Level = 0.004
    failed: Level = 0.0
    rejected: Level = 0.0


@dataclass(frozen=True, slots=True)
class State:
    """What an engine then shows: one value a scrape (seconds, tokens, requests, shares 0 to 1).

    ``busy`` is the share of time in which the GPU computes, ``rps`` finished requests a second.
    """

    load: Load
    engine: Engine
    running: Floats
    waiting: Floats
    kv: Floats
    rps: Floats
    queue_s: Floats
    prefill_s: Floats
    itl_s: Floats
    busy: Floats
    step_tokens: Floats

    def batch(self, rng: np.random.Generator) -> Floats:
        """Return the running requests at each scrape: whole, and at the limit while others wait."""
        noise = 1.0 + 0.03 * rng.standard_normal(self.running.size).clip(-2.0, 2.0)
        noise = np.where(self.waiting > 0.5, 1.0, noise)
        return np.minimum(np.round(self.running * noise), float(self.engine.max_seqs))

    @property
    def ttft_s(self) -> Floats:
        """Time to first token (s)."""
        return np.asarray(self.load.front_s + self.queue_s + self.prefill_s)

    @property
    def decode_s(self) -> Floats:
        """First to last token (s)."""
        return np.asarray(self.itl_s * self.load.output)


def settle(engine: Engine, load: Load, n: int) -> State:
    """Return the state that an engine settles in under a load, n values each."""

    def wide(value: Level) -> Floats:
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)))

    users, prompt, output = wide(load.users), wide(load.prompt), wide(load.output)
    slow, host = wide(load.slow), wide(load.host_s)
    computed = prompt * (1.0 - wide(load.hit))
    # A request holds its whole prompt and, on average, half of its answer.
    fits = engine.kv_tokens / (prompt + output / 2.0)
    running = np.minimum(np.minimum(users, float(engine.max_seqs)), fits)
    held = users - running
    stalls = wide(load.stall_share)
    gpu_step = (engine.step_s + engine.per_seq_s * running) * slow
    gap = (gpu_step + host) * (1.0 - stalls) + stalls * wide(load.stall_s)
    prefill = computed / engine.prefill_tps * slow
    # What is preempted decodes a second time, on average half of what it had.
    decode = output * gap * (1.0 + 0.5 * wide(load.preempted))
    rps = running / (prefill + decode + running * prefill)
    share = np.clip(rps * prefill, 0.0, 0.97)
    stretch = 1.0 / (1.0 - share)
    in_kernels = share + (1.0 - share) * gpu_step / (gpu_step + host)
    busy = np.clip(in_kernels * np.minimum(running, 1.0), 0.0, 0.99)
    return State(
        load, engine, running, held, np.clip(running / fits, 0.0, 1.0), rps,
        (held + wide(load.deferred)) / np.maximum(rps, 1e-6), prefill * stretch,
        decode / output * stretch, busy,
        np.minimum(running + rps * computed * gap * stretch, float(engine.max_tokens)),
    )  # fmt: skip
