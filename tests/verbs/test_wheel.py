"""The installed package, without the checkout: a wheel in an environment of its own does everything a user needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "clearhead"
SMALL = "data.size=300 tokenizer.vocab=400 model.d_model=32 model.d_ff=64 model.heads=2 train.steps=4 train.samples=0"
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT)]
    pip(*build)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; torch and the others are those that the tests use."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    pip("--python", str(folder / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    [packages] = folder.glob("lib/python*/site-packages")
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "others.pth").write_text(
        "\n".join(others)
    )  # the .pth files in there, as of an editable one, are not read
    return folder


@pytest.fixture(scope="module")
def run(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that the installed package has trained."""
    folder = tmp_path_factory.mktemp("elsewhere") / "run"
    cache = f"data.cache={folder.parent / 'cache'}"
    clearhead(environment, "train", "phrasebook", *SMALL.split(), cache, "train.evaluate_every=0", "--run", folder)
    return folder


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr


def clearhead(environment: Path, *arguments: object) -> str:
    command = [environment / "bin" / "clearhead", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env=ENVIRONMENT, cwd=environment, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    expected = {
        f"clearhead/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected |= {f"clearhead/recipes/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    assert expected - {*zipfile.ZipFile(wheel).namelist()} == set()


def test_the_installed_package_is_not_the_checkout(environment: Path) -> None:
    code = "import clearhead, clearhead.cli; print(clearhead.__file__)"
    command = [environment / "bin" / "python", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT, cwd=environment)
    assert Path(found.stdout.strip()).is_relative_to(environment), found.stderr


def test_it_explains_itself_and_its_corpora(environment: Path) -> None:
    assert "Usage: clearhead COMMAND" in clearhead(environment, "--help")
    shown = clearhead(environment, "data")
    assert "phrasebook" in shown
    assert "recipes for your own files" in shown  # they are packaged, too


def test_it_translates_before_anything_is_trained(environment: Path) -> None:
    assert "gare" in clearhead(environment, "translate", "Where is the nearest station?")


def test_it_trains_translates_and_walks(environment: Path, run: Path) -> None:
    assert (run / "model.safetensors").is_file()
    assert clearhead(environment, "translate", run, "the red car is fast", "the dog").count("\n") == 2
    shown = clearhead(environment, "walk", run, "the red car is fast")
    assert "attention" in shown


def test_it_measures_itself(environment: Path) -> None:
    shown = clearhead(environment, "bench", "--quick", "--rounds", "1", "--no-peers", "--only", "cpu-train-demo")
    assert "train the demo's model: target tokens/s" in shown


def test_it_serves_the_page(environment: Path, run: Path) -> None:
    command = [environment / "bin" / "clearhead", "explore", run, "--port", "0", "--no-open"]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a suite in the background of a shell has it ignored
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=environment, preexec_fn=heed
    )
    try:
        assert server.stderr
        line = server.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + server.stderr.read()
        address = found[0].rstrip("/")
        for path, words in (("/", b"main.js"), ("/main.js", b"import"), ("/api/run", b'"family": "encoder-decoder"')):
            with urlopen(address + path, timeout=PATIENCE) as answer:
                assert words in answer.read(), path
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.wait()
