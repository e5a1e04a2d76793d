"""Servers for the integration tests."""

from __future__ import annotations

from tests.servers.fixtures import (
    alertmanager_tools,
    compose_tool,
    llama_cpp_server,
    prometheus_tools,
    standin_server,
    vllm_server,
)

__all__ = [
    "alertmanager_tools",
    "compose_tool",
    "llama_cpp_server",
    "prometheus_tools",
    "standin_server",
    "vllm_server",
]
