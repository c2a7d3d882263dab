"""Does a bare word name a machine?

It does if it has a letter and a digit ("node-3", "dgx07") and is no hardware model ("H100"), no
thing with a number or version ("llama-3-70b", "CUDA-12", "rack-7") and no ticket ("INC-4711").
"""

from __future__ import annotations

import re

from bot.router.spans import any_of, pattern, word_set

_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
# Words that follow "gpu 5 on" or "node" and name nothing.
_NO_NAMES = word_set(
    "a all an and any are at average be but can cluster code did do does down error exit exporter",
    "field fine fire for from gets gpu gpus had has have health here host how http https idle in",
    "is it its level line load looks machine mask my name names no node not of off ok on or our",
    "out pid please pool port rack running seems server since slow so status step epoch still",
    "stuck sxid than that the their there this to type up usage was we were what when where which",
    "who why with xid yet you your box",
)
# Stems under which machines are named, also where a ticket could be called the same.
_MACHINES = pattern(
    any_of("node dgx hgx gpu host worker compute server cn srv ip box rig ws"), "[a-z]*"
)
_MODELS = pattern(
    r"(?:[abhltpkv]\d{1,4}[a-z]{0,3}|(?:gb|gh|mi|rtx|gtx)-?\d+\w*|l40s|a10g|gaudi\d|tpu-?v?\d\w*",
    r"|(?:nvidia|tesla|quadro|geforce)-?\w*)(?:-\d+gb|-sxm\d?|-pcie|-nvl\d*)*",
)
_NUMBERED = pattern(
    any_of(
        "pci pcie cuda nvlink nvswitch hbm gddr dr ddr fp bf tf int uint ipv python py k8s k3s s3",
        "ec x utf sha md llama gpt qwen mistral mixtral deepseek claude gemini gemma phi bert t sd",
        "v p q h gen step epoch rank layer batch bs tp pp dp ep lr seed sm mhz ghz xid sxid gpu",
        "gpus mig rev ver version r os ubuntu rhel cu driver nccl torch pytorch tensorflow cudnn",
        "rack row room slot port level phase part page line bit bits field mask covid top mp log b",
        "co web i l n u eth ib mlx nvme cpu core socket numa inc pr jira ops sre tkt ticket bug",
        "issue req chg prb sev cve figure fig table plan round day week",
    ),
    r"[._-]?v?\d+(?:[._-]?\w+)*",
)
_TICKET = re.compile(r"[A-Z]{2,10}-\d+|[A-Z0-9]+")
_GPU = pattern(r"gpus?-?\d*")


def may_name_host(word: str) -> bool:
    """Return whether a word in a host's place ("gpu 5 on …") can be its name."""
    return word.lower() not in _NO_NAMES and not _GPU.fullmatch(word)


def looks_like_host(word: str) -> bool:
    """Return whether a word anywhere is surely a host's name; a cluster may stand before it."""
    name = word.rpartition("::")[2]
    if _ADDRESS.fullmatch(name):
        return all(int(part) < 256 for part in name.split("."))
    if "_" in name or not any(char.isdigit() for char in name) or not may_name_host(name):
        return False
    if _MACHINES.fullmatch(re.split(r"[\d.-]", name)[0]):
        return True
    return not any(other.fullmatch(name) for other in (_TICKET, _MODELS, _NUMBERED))
