"""Secrets in pasted text are masked; what an answer is about is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import to_json
from engine.readers import read
from engine.redact import redact
from tests.support import packaged

# Made up here; put together so that no scanner takes them for real ones.
GITHUB = "ghp_" + "a1B2" * 9
SLACK = "xoxb-" + "123456789012-abcdefABCDEF"
AWS = "AKIA" + "ABCDEFGHIJKLMNOP"
HUGGING = "hf_" + "AbCdEfGhIj" * 3
OPENAI = "sk-" + "proj-" + "Ab12" * 10
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".abcDEF123456"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/IBAAKC==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"export GITHUB_TOKEN={GITHUB}", GITHUB),
        (f"pushing with {GITHUB}.", GITHUB),
        (f"token {SLACK} revoked", SLACK),
        (f"aws_access_key_id = {AWS}", AWS),
        ("aws_secret_access_key=wJalr+XUtnFEMI/K7MDENG", "wJalr+XUtnFEMI/K7MDENG"),
        (f"HF_TOKEN: '{HUGGING}'", HUGGING),
        (f'{{"api_key": "{OPENAI}"}}', OPENAI),
        (f"Authorization: Bearer {JWT}", JWT),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("password: hunter2!", "hunter2!"),
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123"),
        ("postgresql://gpu:s3cret@db.internal/x", "s3cret"),
        ("mail from jane.doe+ops@example.co.uk arrived", "jane.doe"),
        ("peer 8.8.4.4:1234 is gone", "8.8.4.4"),
        ("peer 2001:4860:4860::8888 is gone", "2001:4860"),
        (PEM, "MIIEow"),
        ("run --password Sup3rS3cret! now", "Sup3rS3cret!"),
        ("MYSQL_PWD=Sup3rS3cret! in env", "Sup3rS3cret!"),
        ("redis://:p@ss@h:6379/0", "p@ss"),
        ("name=dckr_pat_" + "a1" * 14, "dckr_pat_"),
        ("sk_live_" + "a1" * 10, "sk_live_a"),
        ("AccountKey=abcdEFGH1234567890==", "abcdEFGH"),
        (f"x {AWS} y", AWS),
        ("password=Tr0ub4dor&3 x", "Tr0ub4dor"),
    ],
)  # fmt: skip
def test_a_secret_is_masked(text: str, secret: str) -> None:
    masked = redact(text)
    assert secret not in masked
    assert "[redacted" in masked
    assert redact(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "peer 10.36.143.59<44206> status=12 localGid ::ffff:10.87.88.182 remoteGids::ffff:10.87.4.221",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.",
        "GPU-3aee3597-e367-4fa6-afb7-33020d47171b at 00000000:1B:00.0, driver 550.54.15",
        "peer fe80::966d:ae03:8b:de78%ib0<53249>, node fd00::1, 100.64.3.9, 172.16.0.4, 127.0.0.1",
        "Node GUID: 0x946dae03008bde78, port 0c42:a103:0065:b2b4, MAC 94:6d:ae:8b:de:78",
        "PWD=/srv/app OLDPWD=/srv cwd=/srv",
        "max_tokens: 4096, 17 tokens=512, num_prompt_tokens=3",
        "NCCL version 2.21.5+cuda12.4, VBIOS 96.00.74.00.01, firmware 28.39.1002",
        "at 03:12:01.5, 2026-11-29T03:12:01Z, ratio 1:2:3",
        'vllm:num_requests_running{engine="0",model_name="zai-org/GLM-4.5"} 41.0',
        "torch.distributed: user@ is no address, nor is @app.route",
    ],
)  # fmt: skip
def test_what_an_answer_is_about_is_left(text: str) -> None:
    assert redact(text) == text


def test_an_answer_does_not_repeat_what_was_pasted_beside_its_finding() -> None:
    paste = f"[1.0] NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name={GITHUB}, Graphics Exception"
    assert GITHUB not in str(to_json(read(paste.encode(), packaged.knowledge())))


@given(st.text(max_size=500))
def test_any_text_is_masked_once_and_for_all(text: str) -> None:
    masked = redact(text)
    assert redact(masked) == masked


@pytest.mark.parametrize("piece", ["a.", "a:", "token", "eyJ", "1.", "-", "x@", "sk-", "a_", "://"])
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    began = time.monotonic()
    redact(piece * (100_000 // len(piece)))
    assert time.monotonic() - began < 5.0
