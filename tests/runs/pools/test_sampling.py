"""Samples of what an attempt uses: the lines, their pace, and what nvidia-smi says."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from runs.pools import sampling
from runs.pools.lines import parse_metrics
from runs.pools.sampling import AT_ONE_PACE, EVERY_SECONDS, Sampler, parse_gpus

MEBIBYTE = 2**20


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_sample_is_what_was_used_since_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    sampler = Sampler(str(path), 100.0, has_gpus=False)
    assert not sampler.is_due(104.9)
    for now, cpu_seconds, memory in ((105.0, 10.0, 1000), (110.0, 10.5, 2000), (115.0, 10.2, 3000), (120.0, 10.5, 500)):
        assert sampler.is_due(now)
        sampler.take(now, cpu_seconds, memory)
    found = lines(path)
    assert [line["value"] for line in found if line["key"] == "system/cpu_percent"] == [200.0, 10.0, 0.0, 0.0]
    assert [line["value"] for line in found if line["key"] == "system/memory_bytes"] == [1000, 2000, 3000, 500]
    assert [line["step"] for line in found if line["key"] == "system/memory_bytes"] == [5, 10, 15, 20]
    points, bad, _, _ = parse_metrics(path.read_bytes(), 1)
    assert (len(points), bad.count) == (8, 0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_long_run_is_sampled_less_often(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    sampler, now, week = Sampler(str(path), 0.0, has_gpus=False), 0.0, 7 * 86_400.0
    while now < week:
        now += EVERY_SECONDS
        if sampler.is_due(now):
            sampler.take(now, now / 2, 1)
    assert 5 * AT_ONE_PACE < len(lines(path)) < 20 * AT_ONE_PACE
    assert path.stat().st_size < MEBIBYTE


def test_a_folder_that_is_gone_is_a_gap_and_no_end(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path / "gone" / "samples.jsonl"), 0.0, has_gpus=False)
    sampler.take(5.0, 1.0, 1)
    sampler.take(10.0, 1.0, 1)
    (tmp_path / "gone").mkdir()
    sampler.take(15.0, 1.5, 1)
    assert {line["step"] for line in lines(tmp_path / "gone" / "samples.jsonl")} == {15}  # what it could not write is a gap


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0, 37, 10240\n", {"gpu_0_percent": 37, "gpu_0_memory_bytes": 10240 * MEBIBYTE}),
        ("0, 0, 3\n1, 100, 40960\n", {"gpu_0_percent": 0, "gpu_0_memory_bytes": 3 * MEBIBYTE, "gpu_1_percent": 100}
         | {"gpu_1_memory_bytes": 40960 * MEBIBYTE}),
        ("0, [N/A], 512\n", {"gpu_0_memory_bytes": 512 * MEBIBYTE}),
        ("0, [Not Supported], [Not Supported]\n", {}),
        ("No devices were found\n", {}),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", {}),
        ("0, -1, 1e9\n\n1\n,,\n", {}),
        ("", {}),
        ("".join(f"{number}, 1, 1\n" for number in range(1000)), None),
    ],
)  # fmt: skip
def test_what_nvidia_smi_says(said: str, expected: dict[str, float] | None) -> None:
    found = parse_gpus(said)
    if expected is None:
        assert len(found) == 2 * sampling.MAX_GPUS
    else:
        assert found == expected, "what is not measured is absent, never 0"


def tool(folder: Path, script: str) -> str:
    """A program in the place of nvidia-smi."""
    place = folder / "nvidia-smi"
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return str(place)


def test_gpus_are_asked_beside_the_run_and_only_where_it_has_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "NVIDIA_SMI", (tool(tmp_path, "echo '0, 37, 10240'"),))
    path = tmp_path / "samples.jsonl"
    for has_gpus, expected in ((False, []), (True, [37])):
        sampler = Sampler(str(path), 0.0, has_gpus=has_gpus)
        sampler.take(5.0, 1.0, 1)
        until = time.monotonic() + 5
        while sampler.own() and time.monotonic() < until:
            sampler.look_at_gpus(6.0)
            time.sleep(0.01)
        assert [line["value"] for line in lines(path) if line["key"] == "system/gpu_0_percent"] == expected


def test_a_tool_that_hangs_is_ended_and_asked_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "NVIDIA_SMI", (tool(tmp_path, "exec sleep 60"),))
    sampler = Sampler(str(tmp_path / "samples.jsonl"), 0.0, has_gpus=True)
    sampler.take(5.0, 1.0, 1)
    (pid,) = sampler.own()
    began = time.monotonic()
    sampler.look_at_gpus(6.0)
    assert sampler.own()
    sampler.look_at_gpus(5.0 + sampling.GPU_TIMEOUT_SECONDS + 1)
    assert time.monotonic() - began < 2, "the launcher waited for it"
    assert not sampler.own()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    for now in (20.0, 25.0, 30.0):
        sampler.take(now, 1.0, 1)
        assert not sampler.own()
