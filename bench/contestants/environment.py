"""Environments of the peers: made once, with the versions that were measured."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "runs" / "bench" / "peers"
PACKAGES = {"eole": ("eole==0.6.4", "aiohttp")}


def peer_python(name: str) -> Path:
    """Return the Python that has this peer; its environment is made if it is not there yet."""
    folder = PEERS / name
    python, done = folder / "bin" / "python", folder / "done"
    if not done.exists():
        print(f"Creating {folder} and installing {name} ...", flush=True)
        venv.create(folder, with_pip=True)
        constraints = ROOT / "constraints.txt"
        lines = constraints.read_text(encoding="utf-8").splitlines()
        torch = next(line for line in lines if line.startswith("torch=="))
        for packages in ((torch,), PACKAGES[name]):  # torch first, as in the Makefile
            command = [python, "-m", "pip", "install", "--quiet", "-c", constraints, *packages]
            subprocess.run(command, check=True)
        done.touch()
    return python
