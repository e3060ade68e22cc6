"""The table of cells and the commands under other versions of IPython, each in an environment of its own.

torch and the other heavy packages are shared with this environment: its folder stands behind the new one's on the path,
so that only the versions under test are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = {
    "7.34": ["ipython==7.34.*", "ipykernel==6.*", "ipywidgets==7.7.*"],  # Google Colab
    "8": ["ipython==8.*", "ipykernel==6.*", "ipywidgets==8.*"],
}


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
@pytest.mark.kernel
@pytest.mark.parametrize("version", VERSIONS)
def test_with_another_ipython(version, tmp_path):
    made = run(sys.executable, "-m", "venv", tmp_path / "env")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    got = run(python, "-m", "pip", "install", "-q", *VERSIONS[version])
    if got.returncode:
        pytest.skip(f"IPython {version} cannot be installed here: {got.stderr.strip()[-300:]}")
    folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    shared = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    Path(folder, "shared.pth").write_text("\n".join([*shared, str(ROOT)]) + "\n", encoding="utf-8")

    asked = run(python, "-c", "import IPython, torch; print(IPython.__version__)")
    assert asked.stdout.startswith(version), asked.stdout + asked.stderr
    files = [Path(__file__).parent / name for name in ("test_cells.py", "test_magic.py")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
