"""What a workload will send, before anything is sent."""

from __future__ import annotations

from cliffwatch.workload.preview.preview import Preview, preview

__all__ = ["Preview", "preview"]
