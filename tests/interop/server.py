"""The server under test: ours, on ports of its own, or the one that REFERENCE_HTTP names. And Janus, as another one."""

import asyncio
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import aiohttp

JANUS = shutil.which("janus")
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Server:
    """Starts the server by the same code as the other tests (tests/server), and stops it."""

    def __init__(self, config: str = "", http: str = ""):
        """`http`: keys of the section of that name."""
        self.config, self.of_http = config, http

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            shutil.which("node"), str(ROOT / "tests/server/serve.mjs"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"SERVER_CONFIG": self.config, "SERVER_HTTP": self.of_http},
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

    @property
    def ws(self) -> str:
        """The address of the Janus API over WebSocket."""
        return self.addresses["ws"]


class Janus:
    """Debian's Janus, with nothing but its video room, over HTTP."""

    PLUGINS = "audiobridge duktape echotest lua nosip recordplay sip streaming textroom videocall voicemail"
    TRANSPORTS = "mqtt nanomsg pfunix rabbitmq websockets"

    async def __aenter__(self):
        self.folder = tempfile.TemporaryDirectory()
        port = free_port()

        def of(names: str) -> str:
            return ",".join(f"libjanus_{name}.so" for name in names.split())

        self.http = f"http://127.0.0.1:{port}/janus"
        for name, text in {
            "janus.jcfg": f"""general: {{ debug_level = 3 }}
                plugins: {{ disable = "{of(self.PLUGINS)}" }}
                transports: {{ disable = "{of(self.TRANSPORTS)}" }}""",
            "janus.plugin.videoroom.jcfg": "general: { }",
            "janus.transport.http.jcfg":
                f'general: {{ json = "compact" base_path = "/janus" http = true ip = "127.0.0.1" port = {port} }}',
        }.items():
            (pathlib.Path(self.folder.name) / name).write_text(text + "\n")
        self.process = await asyncio.create_subprocess_exec(
            JANUS, "--configs-folder", self.folder.name,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        async with aiohttp.ClientSession() as http, asyncio.timeout(40):
            while True:
                try:
                    async with http.get(f"{self.http}/info") as answer:
                        if answer.status == 200:
                            return self
                except aiohttp.ClientConnectionError:
                    if self.process.returncode is not None:
                        raise RuntimeError("Janus did not start") from None
                    await asyncio.sleep(0.05)

    async def __aexit__(self, *_):
        self.process.terminate()
        await self.process.wait()
        self.folder.cleanup()


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
