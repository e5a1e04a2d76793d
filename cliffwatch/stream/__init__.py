"""What came back: SSE framing, one small file per API dialect, token timing (definitions: docs/timing.md)."""

from cliffwatch.stream.dialect import Dialect
from cliffwatch.stream.http_error import classify_http
from cliffwatch.stream.llama_cpp_completion import LlamaCppCompletion
from cliffwatch.stream.openai_chat import OpenAIChat
from cliffwatch.stream.openai_completions import OpenAICompletions
from cliffwatch.stream.response import ResponseReader, StreamResult
from cliffwatch.stream.triton_generate import TritonGenerate

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (OpenAICompletions(), OpenAIChat(), TritonGenerate(), LlamaCppCompletion())
}

__all__ = ["DIALECTS", "Dialect", "ResponseReader", "StreamResult", "classify_http"]
