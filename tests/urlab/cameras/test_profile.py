"""Render profiles."""

import pytest

from urlab.cameras.profile import SETTINGS, effective_profile, is_software
from urlab.config import RenderProfile

CPU = "llvmpipe (LLVM 15.0.6, 256 bits)"
GPU = "NVIDIA GeForce RTX 4090/PCIe/SSE2"


@pytest.mark.parametrize("name", [CPU, "softpipe", "Software Rasterizer", "Mesa OSMesa", "Google SwiftShader"])
def test_the_cpu_is_recognised(name: str) -> None:
    assert is_software(name)


@pytest.mark.parametrize("name", [GPU, "AMD Radeon RX 7900", "Mesa Intel(R) UHD Graphics 620", "Apple M2"])
def test_a_gpu_is_not_taken_for_one(name: str) -> None:
    assert not is_software(name)


def test_auto_is_fast_on_a_cpu_and_quality_on_a_gpu() -> None:
    assert effective_profile(RenderProfile.AUTO, CPU) is RenderProfile.FAST
    assert effective_profile(RenderProfile.AUTO, GPU) is RenderProfile.QUALITY


@pytest.mark.parametrize("wanted", [RenderProfile.FAST, RenderProfile.QUALITY])
def test_what_was_chosen_is_kept_everywhere(wanted: RenderProfile) -> None:
    assert effective_profile(wanted, CPU) is effective_profile(wanted, GPU) is wanted


def test_every_profile_but_auto_has_settings() -> None:
    assert set(SETTINGS) == set(RenderProfile) - {RenderProfile.AUTO}
