"""What accelerators can do at best: one data file each, with its source."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cliffwatch.errors import InputError
from cliffwatch.roofline.data import Named, find, load_all

Dtype = Literal["fp16", "bf16", "fp8", "int8", "int4"]
DTYPE_BYTES: dict[Dtype, float] = {"fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


class Hardware(Named):
    """One accelerator: dense matrix throughput by number format, bandwidths, memory."""

    peak_tflops: dict[Dtype, float]
    bandwidth_gb_s: float = Field(gt=0)
    memory_gib: float = Field(gt=0)
    interconnect_gb_s: float = Field(gt=0)

    def peak_flop_s(self, dtype: Dtype) -> float:
        """Operations a second in a number format. Raises InputError where the chip has no such matrix units."""
        if dtype not in self.peak_tflops:
            raise InputError(
                f"{self.name} has no matrix units for it",
                field="weights",
                value=dtype,
                allowed=", ".join(self.peak_tflops),
            )
        return self.peak_tflops[dtype] * 1e12

    @property
    def bandwidth_byte_s(self) -> float:
        """Bytes a second from its memory."""
        return self.bandwidth_gb_s * 1e9

    @property
    def interconnect_byte_s(self) -> float:
        """Bytes a second to its neighbours, both directions together."""
        return self.interconnect_gb_s * 1e9

    @property
    def memory_bytes(self) -> float:
        """Bytes of its memory."""
        return self.memory_gib * 2**30


def load_hardware(name: str, *, field: str = "hardware") -> Hardware:
    """An accelerator by name or alias, in any case. Raises InputError that names the known ones."""
    return find("hardware", Hardware, name, field=field)


def hardware_names() -> list[str]:
    """Every accelerator that has a data file."""
    return [hardware.name for hardware in load_all("hardware", Hardware)]
