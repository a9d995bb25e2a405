"""What a newcomer meets: the words of `make`, and plain sentences where something is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(
    *command: str, cwd: Path = ROOT, path: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `command`; with `path`, only the programs of that folder can be found."""
    # These tests may run under `make test PYTHON=...`: what that make was told is not ours.
    ours = {key for key in os.environ if not key.startswith("MAKE")} - {"PYTHON"}
    env = {key: os.environ[key] for key in ours}
    env |= {"PATH": str(path)} if path else {}
    return subprocess.run(
        command,
        cwd=cwd,
        env=env | variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """Return a folder of programs as a small machine has them: a shell's, and no Python."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "cksum", "head", "make", "awk", "id", "rm", "find"):
        found = shutil.which(name)
        assert found, f"this machine has no {name}"
        (programs / name).symlink_to(found)
    return programs


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with what setting up needs, and no .venv."""
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "system-packages.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def put_program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def test_bare_make_lists_every_word_with_a_sentence() -> None:
    words = re.findall(r"^  ([a-z-]+) +(\S.+)$", run("make").stdout, re.MULTILINE)
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    # `help` is bare make itself, `venv` and `base` are what others need: no words to learn.
    assert {word for word, _ in words} == set(declared[1].split()) - {"help", "venv", "base"}
    assert all(len(sentence) > 20 for _, sentence in words)


def put_fake_venv(clone: Path, diary: Path) -> None:
    """Give `clone` a .venv whose Python and pip only write down how they are called."""
    programs = clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    put_program(programs, "python", f'echo "python $*" >> {diary}')
    put_program(programs, "angarium", f'echo "angarium $*" >> {diary}')


def test_make_run_installs_the_base_only_and_once(clone: Path, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    put_fake_venv(clone, diary)
    assert run("make", "run", cwd=clone).returncode == 0
    installs = [line for line in diary.read_text().splitlines() if " install " in line]
    assert installs[-1].endswith("--editable .")
    assert not any("dev" in line for line in installs)
    diary.unlink()
    assert run("make", "run", "PORT_BASE=7500", cwd=clone).returncode == 0
    assert "angarium up --port-base 7500" in diary.read_text()
    assert "-m pip" not in diary.read_text()


def test_a_secure_run_brings_what_makes_certificates_and_only_once(
    clone: Path, tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    put_fake_venv(clone, diary)
    assert run("make", "run", "SECURE=1", cwd=clone).returncode == 0
    assert "angarium up --secure --pipeline" in diary.read_text()
    assert "constraints.txt cryptography" not in diary.read_text()
    missing = f'echo "$*" >> {diary}; case "$*" in *"import cryptography"*) exit 1; esac'
    put_program(clone / ".venv" / "bin", "python", missing)
    diary.unlink()
    assert run("make", "run", "SECURE=1", cwd=clone).returncode == 0
    assert "--constraint constraints.txt cryptography" in diary.read_text()
    diary.unlink()
    assert run("make", "run", cwd=clone).returncode == 0
    assert "cryptography" not in diary.read_text()


def test_a_venv_for_development_is_good_enough_to_run(clone: Path, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    put_fake_venv(clone, diary)
    assert run("sh", "scripts/venv.sh", cwd=clone).returncode == 0
    assert "--editable .[dev]" in diary.read_text()
    diary.unlink()
    assert run("make", "run", cwd=clone).returncode == 0
    assert "-m pip" not in diary.read_text()


def test_what_pipelines_need_is_built_with_our_backend_wherever_pip_builds_it(
    clone: Path, tmp_path: Path
) -> None:
    # PySpark is a source package: pip builds it in a folder of its own, and met an old setuptools.
    diary = tmp_path / "diary"
    put_fake_venv(clone, diary)
    put_program(clone / ".venv" / "bin", "python", f'echo "$PYTHONPATH $*" >> {diary}')
    assert run("sh", "scripts/venv.sh", "spark", cwd=clone).returncode == 0
    building = next(line for line in diary.read_text().splitlines() if "--editable" in line)
    assert building.startswith(f"{clone.resolve()}/.venv/.backend ")


def test_make_clean_stops_the_cluster_and_removes_its_data(clone: Path, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    put_fake_venv(clone, diary)
    (clone / ".angarium" / "node-1").mkdir(parents=True)
    for folder in ("src", "tests", "benchmarks"):
        (clone / folder).mkdir()
    assert run("make", "clean", cwd=clone).returncode == 0
    assert diary.read_text() == "angarium up --stop\n"
    assert not (clone / ".angarium").exists()


def test_without_python_the_apt_line_is_printed(bare_machine: Path, clone: Path) -> None:
    answer = run("make", "test", cwd=clone, path=bare_machine)
    assert answer.returncode != 0
    assert "Angarium needs Python 3.11 or newer" in answer.stderr
    assert "apt-get install -y python3 python3-venv" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_old_python_is_told_by_its_version(bare_machine: Path, clone: Path) -> None:
    put_program(
        bare_machine, "python3", '[ "$1" = --version ] && echo "Python 3.9.2" && exit 0; exit 1'
    )
    answer = run("make", "test", cwd=clone, path=bare_machine)
    assert answer.returncode != 0
    assert "Python 3.9.2" in answer.stderr
    assert "apt-get install -y" in answer.stderr


def test_the_apt_line_names_the_newest_python_this_machine_could_have(
    bare_machine: Path, clone: Path
) -> None:
    put_program(bare_machine, "apt-cache", '[ "$2" = python3.12-venv ]')
    answer = run("make", "test", cwd=clone, path=bare_machine)
    assert "apt-get install -y python3.12 python3.12-venv\n" in answer.stderr


def test_a_python_without_ensurepip_is_told_the_package_of_its_version(
    bare_machine: Path, clone: Path
) -> None:
    # New enough, but `import venv, ensurepip` fails as on a Debian without python3-venv.
    put_program(
        bare_machine,
        "python3",
        'case "$2" in *ensurepip*) exit 1 ;; *print*) echo 3.11 ;; *) exit 0 ;; esac',
    )
    answer = run("make", "test", cwd=clone, path=bare_machine)
    assert answer.returncode != 0
    assert "apt-get install -y python3.11-venv\n" in answer.stderr


def test_a_named_python_is_refused_rather_than_replaced(clone: Path) -> None:
    answer = run("make", "test", "PYTHON=/nowhere/python3.12", cwd=clone)
    assert answer.returncode != 0
    assert "Angarium needs Python 3.11 or newer" in answer.stderr
    assert not (clone / ".venv").exists()


def test_make_system_leaves_a_complete_machine_alone(bare_machine: Path, clone: Path) -> None:
    (clone / "system-packages.txt").write_text("make  make --version\n", encoding="utf-8")
    answer = run("make", "system", cwd=clone, path=bare_machine)
    assert (answer.returncode, answer.stdout) == (0, "   make: there\n")


def test_make_system_installs_all_that_is_missing_in_one_go(
    bare_machine: Path, clone: Path, tmp_path: Path
) -> None:
    (clone / "system-packages.txt").write_text(
        "# list\n\nmake  make --version\nhorse  gallop --version\nrider  mount 'a horse'\n",
        encoding="utf-8",
    )
    diary = tmp_path / "diary"
    put_program(bare_machine, "env", 'while [ "${1#*=}" != "$1" ]; do shift; done; exec "$@"')
    put_program(bare_machine, "apt-get", f'echo "apt-get $*" >> {diary}')
    put_program(bare_machine, "sudo", '"$@"')
    answer = run("make", "system", cwd=clone, path=bare_machine)
    assert answer.returncode == 0, answer.stderr
    assert diary.read_text().splitlines() == [
        "apt-get update",
        "apt-get install -y --no-install-recommends horse rider",
    ]


def test_ci_tests_as_somebody_with_an_empty_home_and_no_cache(
    bare_machine: Path, clone: Path, tmp_path: Path
) -> None:
    # What a machine has cached hid a broken install once.
    (clone / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", clone / ".ci")
    diary = tmp_path / "diary"
    for name in ("bash", "mktemp", "dirname", "ls"):
        (bare_machine / name).symlink_to(shutil.which(name) or name)
    (bare_machine / "make").unlink()
    said = '$2: $(ls -A "$HOME")|$PIP_NO_CACHE_DIR|${PIP_FIND_LINKS-}${PYTHONPATH-}'
    put_program(bare_machine, "make", f'echo "{said}" >> {diary}')
    answer = run(
        "bash", ".ci/run", cwd=clone, path=bare_machine, PIP_FIND_LINKS="here", PYTHONPATH="there"
    )
    assert answer.returncode == 0, answer.stderr
    assert diary.read_text().splitlines() == ["system: |1|", "test: |1|"]
