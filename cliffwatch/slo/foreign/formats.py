"""Foreign SLO files by the names of their formats."""

from __future__ import annotations

from typing import Any

from cliffwatch.config import parse_documents
from cliffwatch.errors import InputError
from cliffwatch.slo.foreign.openslo_read import is_openslo, read_openslo
from cliffwatch.slo.foreign.pyrra import is_pyrra, read_pyrra
from cliffwatch.slo.foreign.sloth import is_sloth, read_sloth
from cliffwatch.slo.foreign.take import Imported, take

_TELLS = {"openslo": is_openslo, "sloth": is_sloth, "pyrra": is_pyrra}
_SINGLE = {"sloth": read_sloth, "pyrra": read_pyrra}
FORMATS = tuple(_TELLS)


def import_slo(text: str, *, form: str | None, engine_name: str | None, source: str) -> Imported:
    """An SLO file of a foreign one; `form` is one of `FORMATS`, None where it tells itself. Raises InputError."""
    documents = parse_documents(text, source=source)
    if not documents:
        raise InputError("holds nothing", file=source, allowed="an SLO file")
    form = form or _told(documents[0], source)
    if form == "openslo":
        return read_openslo(documents, engine_name=engine_name, source=source)
    if len(documents) > 1:
        raise InputError(
            "holds several documents", file=source, value=len(documents), allowed="a file for each of them"
        )
    return take(_SINGLE[form](documents[0], source=source), engine_name=engine_name, source=source)


def _told(document: dict[str, Any], source: str) -> str:
    for form, tells in _TELLS.items():
        if tells(document):
            return form
    raise InputError("does not tell its format", file=source, allowed=f"--from {', '.join(FORMATS)}")
