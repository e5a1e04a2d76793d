"""What may name an HTTP header (RFC 9110: a token), of a length that servers take."""

from __future__ import annotations

import re

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
