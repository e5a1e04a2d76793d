"""What every response carries, whatever route it came from: security headers, and a count in the service's metrics."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page is plain files of this origin: no inline script or style, no other host, no frame around it.
SECURITY_HEADERS: dict[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

# route template, status, seconds
Observer = Callable[[str, int, float], None]


class ResponseMiddleware:
    """Adds the security headers to every response and reports each one to `observe`."""

    def __init__(self, app: ASGIApp, observe: Observer) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            # Only templates of known routes become label values, never the path that a client made up.
            template = getattr(scope.get("route"), "path", None) or "other"
            self._observe(template, status, time.perf_counter() - started)
