"""The server under test: ours, on ports of its own, or the one that REFERENCE_HTTP names."""

import asyncio
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Server:
    """Starts the server by the same code as the other tests (tests/server), and stops it."""

    def __init__(self, config: str = ""):
        self.config = config

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            shutil.which("node"), str(ROOT / "tests/server/serve.mjs"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"SERVER_CONFIG": self.config},
        )
        line = await self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        self.addresses = json.loads(line)
        return self

    async def __aexit__(self, *_):
        # It stops the server when its input ends, however this program ends.
        self.process.stdin.close()
        status = await self.process.wait()
        if status != 0:
            raise RuntimeError(f"the server ended with status {status}")

    @property
    def base(self) -> str:
        """Where WHIP and WHEP are."""
        return self.addresses["base"]

    @property
    def http(self) -> str:
        """The address of the Janus API over HTTP."""
        return self.addresses["http"]
