"""Tokens that PyJWT makes, with keys that openssl makes: what they open over HTTP, WebSocket, WHIP and WHEP."""

import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import aiohttp
import jwt
from aiortc import VideoStreamTrack
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from server import Server
from whip import Client, Refused

ROOM = "janus.plugin.videoroom"
KINDS = {
    "ES256": (ECAlgorithm, "-algorithm EC -pkeyopt ec_paramgen_curve:P-256"),
    "RS256": (RSAAlgorithm, "-algorithm RSA -pkeyopt rsa_keygen_bits:2048"),
    "EdDSA": (OKPAlgorithm, "-algorithm ed25519"),
}


class Pair:
    """A key pair in files, made by openssl."""

    def __init__(self, folder: pathlib.Path, name: str, algorithm: str = "ES256"):
        self.name, self.algorithm = name, algorithm
        private, self.public = folder / f"{name}.private.pem", folder / f"{name}.pem"
        self.kind, options = KINDS[algorithm]
        subprocess.run(["openssl", "genpkey", *options.split(), "-out", private], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", self.public], check=True)
        self._private = private.read_text()

    def sign(self, ends_in: float = 600, **claims) -> str:
        claims = {"exp": time.time() + ends_in} | claims
        return jwt.encode(claims, self._private, algorithm=self.algorithm, headers={"kid": self.name})

    def jwk(self) -> dict:
        key = load_pem_public_key(self.public.read_bytes())
        return self.kind.to_jwk(key, as_dict=True) | {"kid": self.name, "alg": self.algorithm}


def replace(file: pathlib.Path, pairs: list[Pair]):
    """Makes a JWKS file of these keys, in one step."""
    following = file.with_suffix(".new")
    following.write_text(json.dumps({"keys": [pair.jwk() for pair in pairs]}))
    os.rename(following, file)


class Answer(Exception):
    """The code of an error, and its text."""


@unittest.skipIf("REFERENCE_HTTP" in os.environ, "needs a configuration of its own")
class TokensTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.http = await self.stack.enter_async_context(aiohttp.ClientSession())

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def start(self, keys: str):
        """Starts a server that tokens close, with the rooms and mountpoints 1 and 2."""
        things = "".join(f"""
            [[videoroom.room]]
            room = {number}
            [[streaming.mountpoint]]
            id = {number}
            name = "m{number}"
            type = "whip"
            media = [{{ type = "video", mid = "v" }}]
            """ for number in (1, 2))
        config = f"[server]\ntoken_auth = true\ntrust_loopback = false\n[jwt]\n{keys}\n{things}"
        # Nobody on this machine is trusted: those who read the counters have to be named.
        http = 'metrics_networks = ["127.0.0.0/8"]'
        self.server = await self.stack.enter_async_context(Server(config, http))

    async def ask(self, path: str, token: str, **members) -> dict:
        request = {"transaction": "t", "token": token} | members
        async with self.http.post(self.server.http + path, json=request) as response:
            answer = await response.json()
        if answer["janus"] == "error":
            raise Answer(answer["error"]["code"])
        return answer

    async def attach(self, token: str) -> str:
        """The path of a handle in the video room."""
        session = (await self.ask("", token, janus="create"))["data"]["id"]
        attached = await self.ask(f"/{session}", token, janus="attach", plugin=ROOM)
        return f"/{session}/{attached['data']['id']}"

    async def manage(self, path: str, token: str, **body) -> dict:
        return (await self.ask(path, token, janus="message", body=body))["plugindata"]["data"]

    async def join(self, path: str, token: str, room: int) -> dict:
        await self.ask(path, token, janus="message", body={"request": "join", "ptype": "publisher", "room": room})
        session = path.split("/")[1]
        async with self.http.get(f"{self.server.http}/{session}", params={"token": token}) as response:
            return (await response.json())["plugindata"]["data"]

    async def refused(self, reason: str) -> int:
        async with self.http.get(f"{self.server.base}/metrics") as response:
            metrics = await response.text()
        name = f'portunus_refused_tokens_total{{reason="{reason}"}} '
        return next(int(line.removeprefix(name)) for line in metrics.splitlines() if line.startswith(name))

    async def code(self, token: str) -> int | None:
        """The error that a client with this token gets; none if it is let in."""
        try:
            await self.ask("", token, janus="create")
        except Answer as answer:
            return answer.args[0]
        return None

    async def test_a_token_opens_its_room_and_gives_its_rights(self):
        for algorithm in KINDS:
            with self.subTest(algorithm):
                pair = Pair(self.folder, algorithm, algorithm)
                await self.start(f'key_file = "{pair.public}"')
                token = pair.sign(sub="alice", plugins=["videoroom"], rooms=[1])
                path = await self.attach(token)
                self.assertEqual((await self.join(path, token, 2))["error_code"], 433)
                self.assertEqual((await self.join(path, token, 1))["videoroom"], "joined")
                listing = {"request": "listforwarders", "room": 1}
                self.assertEqual((await self.manage(path, token, **listing))["error_code"], 433)
                trusted = pair.sign(rooms=["videoroom:1"], rights=["forward"])
                self.assertEqual((await self.manage(path, trusted, **listing))["videoroom"], "forwarders")

    async def test_tokens_that_are_none_are_refused_and_counted(self):
        ours, theirs = Pair(self.folder, "ours"), Pair(self.folder, "theirs")
        await self.start(f'key_file = "{ours.public}"\nissuer = "us"')
        self.assertIsNone(await self.code(ours.sign(iss="us")))
        for token, reason in [
            (ours.sign(ends_in=-60, iss="us"), "expired"),
            (ours.sign(nbf=time.time() + 60, iss="us"), "not_yet"),
            (ours.sign(iss="them"), "issuer"),
            (theirs.sign(iss="us"), "signature"),
            (jwt.encode({"exp": time.time() + 60, "iss": "us"}, None, algorithm="none"), "algorithm"),
            (jwt.encode({"exp": time.time() + 60, "iss": "us"}, "x" * 40, algorithm="HS256"), "algorithm"),
            (ours.sign(iss="us", rooms="1"), "malformed"),
            ("nonsense", "unknown"),
        ]:
            with self.subTest(reason):
                before = await self.refused(reason)
                self.assertEqual(await self.code(token), 403)
                self.assertEqual(await self.refused(reason), before + 1)

    async def test_keys_are_changed_while_the_server_runs(self):
        old, new = Pair(self.folder, "old"), Pair(self.folder, "new", "RS256")
        file = self.folder / "jwks.json"
        replace(file, [old])
        await self.start(f'jwks_file = "{file}"')
        of_old, of_new = old.sign(), new.sign()
        self.assertIsNone(await self.code(of_old))
        self.assertEqual(await self.code(of_new), 403)

        async def becomes(token: str, code: int | None):
            async with asyncio.timeout(20):
                while await self.code(token) != code:
                    await asyncio.sleep(0.1)

        replace(file, [old, new])
        await becomes(of_new, None)
        self.assertIsNone(await self.code(of_old))
        file.write_text("{")
        replace(file, [new])
        await becomes(of_old, 403)
        self.assertIsNone(await self.code(of_new))

    async def test_websockets_and_whip_take_the_same_tokens(self):
        pair = Pair(self.folder, "pair")
        await self.start(f'key_file = "{pair.public}"')
        async with self.http.ws_connect(self.server.ws, protocols=["janus-protocol"]) as socket:
            for token, expected in [(pair.sign(), "success"), (pair.sign(ends_in=-60), "error")]:
                await socket.send_json({"janus": "create", "transaction": "t", "token": token})
                self.assertEqual((await socket.receive_json())["janus"], expected)
        token = pair.sign(rooms=["streaming:1"])
        publisher = Client(self.http, token)
        await publisher.publish(f"{self.server.base}/whip/1", VideoStreamTrack())
        for shown, place, status in [
            (token, "2", 401),
            (pair.sign(ends_in=-60, rooms=["streaming:2"]), "2", 401),
            (pair.sign(plugins=["videoroom"]), "2", 403),
            (None, "2", 401),
        ]:
            with self.assertRaises(Refused) as refused:
                await Client(self.http, shown).publish(f"{self.server.base}/whip/{place}", VideoStreamTrack())
            self.assertEqual(refused.exception.status, status, place)
        viewer = Client(self.http, token)
        await viewer.play(f"{self.server.base}/whep/1", "video")
        await viewer.end()
        with self.assertRaises(Refused) as refused:
            await Client(self.http, token).play(f"{self.server.base}/whep/2", "video")
        self.assertEqual(refused.exception.status, 401)
        await publisher.end()


if __name__ == "__main__":
    unittest.main()
