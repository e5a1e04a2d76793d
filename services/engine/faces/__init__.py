"""The faces that the stand-in engine can show."""

from __future__ import annotations

from cliffwatch.errors import InputError
from services.engine.faces import sglang, triton, trtllm, vllm
from services.engine.faces.face import Face

FACES: dict[str, Face] = {face.name: face for face in (vllm.FACE, trtllm.FACE, triton.FACE, sglang.FACE)}


def face_named(name: str) -> Face:
    """By its key in the catalog of engines. Raises InputError that names the known ones."""
    if name not in FACES:
        raise InputError("is no face of the engine", field="--face", value=name, allowed=", ".join(FACES))
    return FACES[name]
