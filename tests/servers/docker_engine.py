"""A Docker Engine of the test's own, and the stack's images made without a registry."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import docker
import docker.errors

from cliffwatch.cli.processes import wait_for
from tests.servers.engines import ROOT
from tests.servers.monitoring import ALERTMANAGER_TEMPLATES, PROMETHEUS_BIN
from tests.servers.processes import end

DOCKER_DIR = ROOT / ".tools" / "docker"
BASE = "cliffwatch-test-base:bookworm"
# What the official images have beside their program: a folder for their data that their user may write to.
_MONITORING = """FROM {base}
COPY . /
RUN install --directory --owner=65534 --group=65534 /{data}
ENTRYPOINT ["/usr/bin/{program}"]
"""


@contextlib.contextmanager
def docker_engine() -> Iterator[tuple[docker.DockerClient, str]]:
    """A client of dockerd and its address; its socket and all it holds are in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="cliffwatch-docker-"))  # a socket's path must be short
    address = f"unix://{folder}/docker.sock"
    command = ["dockerd", f"--host={address}", f"--data-root={folder}/data", f"--exec-root={folder}/exec",
               f"--pidfile={folder}/pid"]  # fmt: skip
    with (folder / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        if not wait_for(lambda: process.poll() is not None or _answers(address), timeout_s=60) or process.poll():
            raise RuntimeError((folder / "dockerd.log").read_text()[-3000:])
        with contextlib.closing(docker.DockerClient(base_url=address, timeout=120)) as client:
            yield client, address
    finally:
        end(process)
        shutil.rmtree(folder)


def _answers(address: str) -> bool:
    try:
        with contextlib.closing(docker.DockerClient(base_url=address, timeout=5)) as client:
            return bool(client.ping())
    except docker.errors.DockerException:
        return False


def make_images(client: docker.DockerClient, folder: Path) -> dict[str, str]:
    """The base image, and Prometheus and Alertmanager on it: settings of docker-compose.yml that name them."""
    with (DOCKER_DIR / "base.tar").open("rb") as rootfs:
        client.api.import_image_from_data(rootfs, repository=BASE.partition(":")[0], tag=BASE.partition(":")[2])
    for program in ("prometheus", "alertmanager"):
        context = folder / f"image-{program}"
        (context / "usr/bin").mkdir(parents=True)
        shutil.copy(PROMETHEUS_BIN / program, context / "usr/bin")
        if program == "alertmanager":
            templates = context / ALERTMANAGER_TEMPLATES.parent.relative_to("/")
            shutil.copytree(ALERTMANAGER_TEMPLATES.parent, templates)
        (context / "Dockerfile").write_text(_MONITORING.format(base=BASE, data=program, program=program))
        client.images.build(path=str(context), tag=f"cliffwatch-test-{program}:local", rm=True)
    return {
        "BASE_IMAGE": BASE,
        "PROMETHEUS_IMAGE": "cliffwatch-test-prometheus:local",
        "ALERTMANAGER_IMAGE": "cliffwatch-test-alertmanager:local",
        "PIP_OPTIONS": "--no-index --find-links /wheelhouse",
    }


def build_context(into: Path) -> Path:
    """The project as committed or changed, without what git ignores, and the wheels of its image."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in listed.decode().split("\0"):
            if name and (ROOT / name).is_file():
                archive.add(ROOT / name, arcname=name)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        archive.extractall(into, filter="data")
    shutil.copytree(DOCKER_DIR / "wheelhouse", into / "wheelhouse", copy_function=os.link)
    return into


class Compose:
    """Docker Compose on one engine, for the project's file and another on top of it."""

    def __init__(self, tool: Path, address: str, project: Path, over: Path, settings: Mapping[str, str]) -> None:
        files = ("-f", project / "docker-compose.yml", "-f", over)
        self._command = [str(part) for part in (tool, "--project-directory", project, *files)]
        self._environment = {**os.environ, **settings, "DOCKER_HOST": address, "DOCKER_BUILDKIT": "0"}

    def __call__(self, *arguments: str, within_s: float = 240) -> str:
        """Standard output. Raises AssertionError with all that it said where it fails."""
        done = subprocess.run([*self._command, *arguments], env=self._environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=within_s, check=False)  # fmt: skip
        assert done.returncode == 0, f"compose {' '.join(arguments)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout
