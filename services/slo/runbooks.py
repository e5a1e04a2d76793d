"""Runbook pages that alerts link to: Markdown files of a folder, read once when the service starts."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from markdown_it import MarkdownIt
from starlette.exceptions import HTTPException

from cliffwatch.errors import InputError

MAX_FILES = 200
MAX_BYTES = 200_000
INDEX = "index"
_LINK = re.compile(r"^(?!https?:)([\w.-]+)\.md(?=$|#)")  # between the pages of the folder
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name} – cliffwatch</title><link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/cliffwatch.css"><link rel="stylesheet" href="/static/page.css"></head>
<body><header class="top"><div class="top-inner"><a class="wordmark" href="/slos">cliffwatch</a>
<nav class="small" aria-label="Pages"><a href="/runbooks">Runbooks</a></nav></div></header>
<main class="runbook">{body}</main></body></html>
"""


def load_runbooks(folder: Path) -> dict[str, str]:
    """HTML of each page by the name of its file without `.md`. HTML inside the Markdown is shown, never obeyed.

    Raises InputError for a folder that cannot be read or holds no pages, too many, or one that is too large.
    """
    try:
        paths = sorted(folder.glob("*.md"))
        if not 0 < len(paths) <= MAX_FILES:
            raise InputError(
                f"holds {len(paths)} pages", file=folder, allowed=f"1 to {MAX_FILES} files that end in .md"
            )
        return {path.stem: _page(path) for path in paths}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=folder, allowed="a folder of runbooks") from error


def add_runbooks(app: FastAPI, pages: Mapping[str, str]) -> None:
    """`/runbooks/NAME`, and `/runbooks`: its index or a list."""
    index = pages.get(INDEX) or _shown(
        "Runbooks", "".join(f'<p><a href="/runbooks/{one}">{one}</a></p>' for one in pages)
    )

    @app.get("/runbooks", include_in_schema=False)
    async def all_pages() -> HTMLResponse:
        return HTMLResponse(index)

    @app.get("/runbooks/{name}", include_in_schema=False)
    async def page(name: str) -> HTMLResponse:
        if name not in pages:
            raise HTTPException(404, detail=f"No runbook of that name; there are: {', '.join(pages) or 'none'}")
        return HTMLResponse(pages[name])


def _page(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError("is too large", file=path, allowed=f"up to {MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", file=path) from error
    return _shown(path.stem, _markdown().render(text))


def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    usual = reader.normalizeLink
    reader.normalizeLink = lambda url: usual(_LINK.sub(r"/runbooks/\1", url))  # type: ignore[method-assign]
    return reader


def _shown(name: str, body: str) -> str:
    return _PAGE.format(name=html.escape(name), body=body)
