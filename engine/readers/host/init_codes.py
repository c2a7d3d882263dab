"""Codes of a failed start of the NVIDIA driver: ``RmInitAdapter failed! (0x25:0x65:1457)``.

Source: NVIDIA open-gpu-kernel-modules 595.45.04, src/nvidia/arch/nvalloc/unix/src/osinit.c and
src/common/sdk/nvidia/inc/nvstatuscodes.h.
"""

from __future__ import annotations

from collections.abc import Mapping

# Steps of RmInitAdapter (RM_INIT_STATUS in osinit.c).
STEPS: Mapping[int, str] = {
    0x10: "mapping the registers",
    0x11: "checking the system",
    0x20: "registering the GPU",
    0x21: "creating the device",
    0x22: "attaching the GPU",
    0x23: "preparing the GPU",
    0x24: "bringing the GPU's engines up",
    0x25: "loading the GPU's state",
    0x26: "setting up DMA",
    0x27: "the second stage of visibility",
    0x30: "reading the VBIOS",
    0x31: "running the VBIOS",
    0x32: "emulating the VBIOS",
    0x40: "scalability set-up",
    0x41: "starting the watchdog",
    0x60: "the firmware policy",
    0x61: "fetching the GSP firmware",
    0x62: "booting the GSP firmware",
}
# Status codes (nvstatuscodes.h) that are seen there.
STATUS: Mapping[int, str] = {
    0x05: "the card is not there",
    0x0F: "the GPU is lost from the bus",
    0x1C: "not enough power",
    0x1F: "invalid argument",
    0x25: "invalid data",
    0x40: "invalid state",
    0x47: "memory training failed",
    0x51: "out of memory",
    0x55: "not ready",
    0x56: "not supported",
    0x59: "an error of the operating system",
    0x61: "the VBIOS was rejected",
    0x62: "a reset is required",
    0x65: "time-out",
    0x6F: "the PMU is not ready",
    0x70: "a microcontroller halted",
    0x71: "fatal error",
    0x72: "memory error",
    0x79: "the GSP halted",
    0x7F: "secure boot failed",
    0xFFFF: "an unspecified error",
}
