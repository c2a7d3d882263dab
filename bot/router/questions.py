"""Free questions: what is asked of the knowledge base, when a message is no command.

A message counts as a question by its form, or as a symptom by its words; whether the knowledge base
knows the answer is for retrieval to say, which answers "not sure" rather than guess.
"""

from __future__ import annotations

import re

from bot.request import Request
from bot.router.slacktext import read_message

_LONGEST = 600
_FORM = re.compile(
    r"\?\s*$|\?\s|^(?:(?:hey|hi|hello|ok|so|please|pls|gpuwhy)\W+)*"
    r"(?:what|which|how|why|where|when|who|is|are|does|do|did|can|could|should|would|will|any"
    r"|explain|show|list|tell|give|find|need|i need|and|or|what about|how about|for|meaning of"
    r"|difference|compare|command|tool|threshold|metric)\b",
    re.IGNORECASE,
)
# A symptom told without a question counts as one if it speaks of the field.
_FIELD = re.compile(
    r"\b(?:gpus?|cuda|nccl|rccl|all-?reduce|all-?gather|collectives?|ttft|tpot|itl|kv[ -]?cache"
    r"|nsys|ncu|nsight|dcgm\w*|nvidia-smi|xids?|sxids?|ecc|vllm|sglang|triton|tensorrt|ranks?|mfu"
    r"|throttl\w+"
    r"|nvlink|nvswitch|infiniband|ib|roce|rdma|gpudirect|lustre|gpfs|nfs|checkpoint\w*|data-?loaders?"
    r"|rocm|rocprof\w*|amd-smi|rocm-smi|mi\d{3}x?|h100|h200|a100|b200|pytorch|torch\w*|nvtx|promql"
    r"|prometheus|exporter|tensor cores?|sm_active|hbm|tokens?|prefill|decode|kernels?|roofline)\b",
    re.IGNORECASE,
)
_NO_QUESTION = re.compile(
    r"^\W*(?:thanks?|thank you|thx|ty|cheers|nice|cool|great|lol|ok(?:ay)?|yes|no|nope|nvm"
    r"|never ?mind|forget (?:it|that)|good (?:bot|morning|night)|bye)\b[^?]{0,40}$",
    re.IGNORECASE,
)


def free_question(text: str) -> Request | None:
    """Return the question that a message asks of the knowledge base, or None; never raises.

    Args:
        text: a message as Slack sends it.
    """
    message = read_message(text)
    prose = message.prose.replace("`", "").strip()
    if not prose or len(prose) > _LONGEST or message.fences or message.quoted:
        return None
    if _NO_QUESTION.match(prose) or not (_FORM.search(prose) or _FIELD.search(prose)):
        return None
    return Request("ask", {"text": prose}, message.excerpt)
