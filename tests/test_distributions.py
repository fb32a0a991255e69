"""What is released: four distributions that hold what they should, install alone, and fit Airflow under the constraints."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
CONSTRAINTS = CHECKOUT / "constraints.txt"
# Name of the distribution: its folder, its package, and what else its sdist holds.
DISTRIBUTIONS = {
    "adk_airflow": ("", "adk_airflow", {"CHANGELOG.md"}),
    "adk_airflow_google_genai": ("providers/google_genai", "adk_airflow_google_genai", {"tests"}),
    "adk_airflow_llama_index": ("providers/llama_index", "adk_airflow_llama_index", {"tests"}),
    "adk_airflow_toolbox": ("providers/toolbox", "adk_airflow_toolbox", {"tests"}),
}
NEVER = re.compile(r"__pycache__|\.pyc$|\.venv|\.demo|providers/")


def project(name: str) -> dict[str, object]:
    loaded: dict[str, object] = tomllib.loads((CHECKOUT / DISTRIBUTIONS[name][0] / "pyproject.toml").read_text())["project"]
    return loaded


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of each distribution, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    for folder, _, _ in DISTRIBUTIONS.values():
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(CHECKOUT / folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_holds_the_package_and_its_licence(built: Path, name: str) -> None:
    (wheel,) = built.glob(f"{name}-[0-9]*.whl")
    folder, package, _ = DISTRIBUTIONS[name]
    names = zipfile.ZipFile(wheel).namelist()
    info = f"{wheel.name.rsplit('-', 3)[0]}.dist-info"

    assert {entry.partition("/")[0] for entry in names} == {package, info}
    assert [entry for entry in names if NEVER.search(entry)] == []
    sources = {path.relative_to(CHECKOUT / folder).as_posix() for path in (CHECKOUT / folder / package).rglob("*.py")}
    assert {entry for entry in names if entry.endswith(".py")} == sources
    assert f"{package}/py.typed" in names
    licence = zipfile.ZipFile(wheel).read(f"{info}/licenses/LICENSE").decode()
    assert licence == (CHECKOUT / "LICENSE").read_text()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_sdist_holds_what_its_wheel_is_built_from(built: Path, name: str) -> None:
    (sdist,) = built.glob(f"{name}-[0-9]*.tar.gz")
    _, package, more = DISTRIBUTIONS[name]
    with tarfile.open(sdist) as archive:
        names = [entry.partition("/")[2] for entry in archive.getnames()]

    assert {entry.partition("/")[0] for entry in names} == {
        *(package, "README.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"),
        *more,
    }
    assert [entry for entry in names if NEVER.search(entry)] == []


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_long_description_links_to_nothing_that_is_not_there(built: Path, name: str) -> None:
    (wheel,) = built.glob(f"{name}-[0-9]*.whl")
    archive = zipfile.ZipFile(wheel)
    metadata = email.message_from_bytes(archive.read(f"{wheel.name.rsplit('-', 3)[0]}.dist-info/METADATA"))
    text = metadata.get_payload()

    assert isinstance(text, str)
    assert text.startswith(f"# {name.replace('_', '-')}")
    links = [*re.findall(r"\]\(([^)]*)\)", text), *re.findall(r"""(?:src|href)=["']?([^"' >]*)""", text)]
    assert [link for link in links if not link.startswith(("https://", "http://"))] == []
    assert "<!--" not in text


def test_the_package_index_takes_them(built: Path) -> None:
    files = sorted(map(str, built.iterdir()))
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert len(files) == 8
    assert done.returncode == 0, done.stdout


def test_they_install_without_the_source_tree_and_are_found_by_airflow(built: Path, tmp_path: Path) -> None:
    wheels = sorted(map(str, built.glob("*.whl")))
    install = ["uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--target", str(tmp_path), *wheels]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    code = """
import adk_airflow, adk_airflow_llama_index, sys
from importlib.metadata import distribution
from adk_airflow.cli import main
print(adk_airflow.__file__, adk_airflow_llama_index.__file__)
for name in ("adk-airflow", "adk-airflow-google-genai", "adk-airflow-llama-index", "adk-airflow-toolbox"):
    found = distribution(name)
    assert str(found.locate_file("")).startswith(sys.argv[1]), name
    for point in found.entry_points:
        if point.group == "apache_airflow_provider":
            print(point.load()()["package-name"])
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=built, env=environment)

    files, *packages = done.stdout.splitlines()
    assert all(file.startswith(str(tmp_path)) for file in files.split())
    assert packages == ["adk-airflow", "adk-airflow-google-genai", "adk-airflow-llama-index", "adk-airflow-toolbox"]


def documented_extras() -> list[str]:
    """Every extra of Airflow that the documentation installs under the constraints."""
    text = "".join(path.read_text() for path in [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md")])
    return sorted({extra for names in re.findall(r"apache-airflow\[([a-z0-9,-]+)\]", text) for extra in names.split(",")})


def own_extras() -> list[str]:
    """Every extra of the four distributions, as a requirement on the checkout."""
    found = []
    for name, (folder, _, _) in DISTRIBUTIONS.items():
        extras = project(name)["optional-dependencies"]
        assert isinstance(extras, dict)
        found += [f"-e ./{folder}[{extra}]" for extra in extras]
    return found


def resolve(requirements: list[str], python: str) -> subprocess.CompletedProcess[str]:
    """Resolves requirements under constraints.txt, beside each other and all four distributions.

    Where all of them resolve to versions that the file names, so does each alone.
    """
    everything = [f"-e ./{folder}" for folder, _, _ in DISTRIBUTIONS.values()]
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--python-version",
        python,
    ]
    return subprocess.run(
        [*command, "--constraint", str(CONSTRAINTS), "-"],
        input="\n".join([*everything, *requirements]),
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
    )


def pinned(text: str) -> dict[str, str]:
    return dict(line.split("==") for line in text.splitlines() if "==" in line)


def test_the_documentation_names_the_extras_that_were_found_broken() -> None:
    assert {"amazon", "fab", "google", "s3fs"} <= set(documented_extras())


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_all_documented_extras_resolve_together_and_the_constraints_say_every_version(python: str) -> None:
    release = pinned(CONSTRAINTS.read_text())["apache-airflow"]
    done = resolve([f"apache-airflow[{','.join(documented_extras())}]=={release}", *own_extras()], python)

    assert done.returncode == 0, done.stderr
    found = pinned(done.stdout)
    assert found.items() <= pinned(CONSTRAINTS.read_text()).items()
    assert found["apache-airflow-providers-google"].partition(".")[0] >= "22"
    assert {"s3fs", "gcsfs", "adlfs", "celery", "flask-appbuilder"} <= found.keys()


def test_what_cannot_be_installed_under_the_constraints_is_found() -> None:
    done = resolve(["python-dateutil>=4"], "3.12")

    assert done.returncode != 0
    assert "python-dateutil" in done.stderr
