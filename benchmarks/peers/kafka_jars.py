"""Where Kafka's jars are: fetched by Maven once, into the user's cache.

Kafka's own archive is not on Maven Central, its parts are. What is fetched is what the `kafka`
module says it needs to run, nothing else.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.peers.port import NotInstalled
from benchmarks.peers.servers import program

KAFKA: Final = "4.3.1"
INSTALL: Final = "sudo apt-get install --no-install-recommends openjdk-17-jre-headless maven"

POM: Final = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>angarium</groupId>
  <artifactId>kafka-for-comparison</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA}</version>
    </dependency>
  </dependencies>
</project>
"""


def kafka_jars() -> Path:
    """Return the folder with the jars (44 MB), fetching them if they are not there."""
    base = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    home = base / f"angarium-peers/kafka-{KAFKA}"
    if (home / "complete").exists():
        return home / "lib"
    maven = program("mvn", INSTALL)
    home.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(POM, encoding="utf-8")
    command = [maven, "-q", "-B", "-f", str(home / "pom.xml"), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={home / 'lib'}", "-DincludeScope=runtime"]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise NotInstalled(f"mvn could not fetch Kafka {KAFKA}:\n{fetched.stdout[-800:]}")
    (home / "complete").touch()
    return home / "lib"
