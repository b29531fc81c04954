"""RTP forwarders and remote publishers: aiortc publishes, two servers pass on, ffmpeg and aiortc receive and decode. One of
the servers may be Janus."""

import asyncio
import base64
import contextlib
import errno
import pathlib
import re
import shutil
import socket
import tempfile
import unittest

import aiohttp
from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import AudioStreamTrack

from janus import Handle
from server import JANUS, Janus, Server

WAIT = 40
ROOM = 1234
KEY = base64.b64encode(bytes(range(30))).decode()


class Room:
    """A room on a server, and the handle that manages it."""

    def __init__(self, server: Server | Janus, http: aiohttp.ClientSession, stack: contextlib.AsyncExitStack):
        self.server, self.http, self.stack = server, http, stack

    async def attach(self) -> Handle:
        handle = await Handle.attach(self.http, self.server.http, "janus.plugin.videoroom")
        self.stack.push_async_callback(handle.close)
        return handle

    async def create(self):
        self.admin = await self.attach()
        await self.manage({"request": "create"})

    async def manage(self, body: dict) -> dict:
        """Sends a request that is answered at once."""
        request = {"janus": "message", "body": body | {"room": ROOM}}
        reply = await self.admin._post(self.admin._address, request)
        data = reply["plugindata"]["data"]
        assert "error_code" not in data, data
        return data


class Member:
    """Someone with a PeerConnection."""

    def __init__(self, handle: Handle, stack: contextlib.AsyncExitStack):
        self.handle = handle
        self.connection = RTCPeerConnection()
        stack.push_async_callback(self.connection.close)
        self.tracks = {}
        self.messages: asyncio.Queue = asyncio.Queue()
        self.connection.on("track", lambda track: self.tracks.__setitem__(track.kind, track))
        self.connection.on("datachannel", lambda channel: channel.on("message", self.messages.put_nowait))

    async def publish(self) -> list:
        """Publishes sound, pictures and a data channel; gives the streams as the server describes them."""
        self.connection.addTrack(AudioStreamTrack())
        self.connection.addTrack(VideoStreamTrack())
        self.channel = self.connection.createDataChannel("talk")
        await self.connection.setLocalDescription(await self.connection.createOffer())
        offer = self.connection.localDescription
        join = {"request": "joinandconfigure", "room": ROOM, "ptype": "publisher", "id": 1}
        event = await self.handle.message(join, {"type": offer.type, "sdp": offer.sdp})
        await self.connection.setRemoteDescription(RTCSessionDescription(**event["jsep"]))
        await self.until("webrtcup")
        return event["plugindata"]["data"]["streams"]

    async def subscribe(self, feed: int, channel: bool = True):
        join = {"request": "join", "room": ROOM, "ptype": "subscriber", "streams": [{"feed": feed}]}
        event = await self.handle.message(join)
        await self.connection.setRemoteDescription(RTCSessionDescription(**event["jsep"]))
        if channel:
            # As janus.js does: Janus sends nothing to who has opened no channel.
            channel = self.connection.createDataChannel("JanusDataChannel")
            channel.on("message", self.messages.put_nowait)
        await self.connection.setLocalDescription(await self.connection.createAnswer())
        answer = self.connection.localDescription
        await self.handle.message({"request": "start"}, {"type": answer.type, "sdp": answer.sdp})
        await self.until("webrtcup")

    async def until(self, kind: str):
        while (await asyncio.wait_for(self.handle.events.get(), WAIT))["janus"] != kind:
            pass

    async def frames(self, kind: str, count: int):
        return [await asyncio.wait_for(self.tracks[kind].recv(), WAIT) for _ in range(count)]


class Decoder:
    """ffmpeg, which decodes so many frames of VP8 that come to a port."""

    def __init__(self, stack: contextlib.AsyncExitStack, crypto: str = ""):
        self.port, self.stack = free_pair(), stack
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.sdp = pathlib.Path(folder) / "forwarded.sdp"
        profile = "RTP/SAVP" if crypto else "RTP/AVP"
        self.sdp.write_text(
            f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=video {self.port} {profile} 96\r\na=rtpmap:96 VP8/90000\r\n"
            + (f"a=crypto:1 {crypto} inline:{KEY}\r\n" if crypto else ""))

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            shutil.which("ffmpeg"), "-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file,udp,rtp,srtp,crypto",
            "-i", str(self.sdp), "-frames:v", "30", "-f", "framemd5", "-",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        # What comes before it listens would be lost, the first keyframe too.
        await listens(self.port, self.process)

    async def done(self) -> tuple[int, int]:
        """Waits for the frames; gives their width and height."""
        try:
            frames, errors = await asyncio.wait_for(self.process.communicate(), WAIT)
        except TimeoutError:
            self.process.kill()
            raise
        assert self.process.returncode == 0, errors.decode()
        width, height = re.search(r"#dimensions 0: (\d+)x(\d+)", frames.decode()).groups()
        return int(width), int(height)


class Forwarding(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        self.http = await self.stack.enter_async_context(aiohttp.ClientSession())

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def room(self, server: Server | Janus | None = None) -> Room:
        server = await self.stack.enter_async_context(server or Server())
        room = Room(server, self.http, self.stack)
        await room.create()
        return room

    async def member(self, room: Room) -> Member:
        return Member(await room.attach(), self.stack)

    async def test_ffmpeg_decodes_what_is_forwarded(self):
        room = await self.room()
        await (await self.member(room)).publish()
        for srtp, crypto in [
            ({}, ""),
            ({"srtp_suite": 80, "srtp_crypto": KEY}, "AES_CM_128_HMAC_SHA1_80"),
            ({"srtp_suite": 32, "srtp_crypto": KEY}, "AES_CM_128_HMAC_SHA1_32"),
        ]:
            with self.subTest(crypto):
                decoder = Decoder(self.stack, crypto)
                await decoder.start()
                stream = {"mid": "1", "port": decoder.port, "rtcp_port": decoder.port + 1, "pt": 96}
                # Nobody listens to the sound: that disturbs nothing.
                silent = {"mid": "0", "port": free_pair()}
                forward = {"request": "rtp_forward", "publisher_id": 1, "host": "127.0.0.1", "streams": [silent, stream]}
                forwarders = (await room.manage(forward | srtp))["forwarders"]
                await decoder.done()
                for forwarder in forwarders:
                    stop = {"request": "stop_rtp_forward", "publisher_id": 1, "stream_id": forwarder["stream_id"]}
                    await room.manage(stop)

    async def test_a_publisher_is_watched_on_another_server(self):
        here, there = await self.room(), await self.room()
        publisher = await self.member(here)
        streams = await publisher.publish()
        for srtp in [{}, {"srtp_suite": 80, "srtp_crypto": KEY}]:
            with self.subTest(srtp=srtp):
                viewer = await self.watched(here, there, publisher, streams, srtp)
                # From there it goes on to whatever takes RTP.
                decoder = Decoder(self.stack)
                await decoder.start()
                forward = {"request": "rtp_forward", "publisher_id": 7, "host": "127.0.0.1",
                           "streams": [{"mid": "1", "port": decoder.port, "pt": 96}]}
                await there.manage(forward)
                await decoder.done()
                await here.manage({"request": "unpublish_remotely", "publisher_id": 1, "remote_id": "there"})
                await there.manage({"request": "remove_remote_publisher", "id": 7})
                await viewer.handle.events.get()

    @unittest.skipUnless(JANUS, "Debian's janus is not installed")
    async def test_a_publisher_is_watched_on_janus_and_one_of_its_here(self):
        here, there = await self.room(), await self.room(Janus())
        for one, other in [(here, there), (there, here)]:
            with self.subTest("ours on Janus" if one is here else "Janus's on ours"):
                publisher = await self.member(one)
                streams = await publisher.publish()
                await self.watched(one, other, publisher, streams)
                await one.manage({"request": "unpublish_remotely", "publisher_id": 1, "remote_id": "there"})
                await other.manage({"request": "remove_remote_publisher", "id": 7})

    async def watched(self, here: Room, there: Room, publisher: Member, streams: list, srtp: dict = {}) -> Member:
        """Publishes on another server, too, where a viewer sees, hears and reads it."""
        add = {"request": "add_remote_publisher", "id": 7, "display": "afar", "streams": streams}
        added = await there.manage(add | srtp)
        publish = {"request": "publish_remotely", "publisher_id": 1, "remote_id": "there", "host": "127.0.0.1",
                   "port": added["port"], "rtcp_port": added["rtcp_port"]}
        await here.manage(publish | srtp)
        viewer = await self.member(there)
        await viewer.subscribe(7)
        # A keyframe comes because the viewer's server asks for one.
        await viewer.frames("video", 30)
        await viewer.frames("audio", 30)
        heard = asyncio.create_task(viewer.messages.get())
        async with asyncio.timeout(WAIT):
            while not heard.done():
                publisher.channel.send("hello over there")
                await asyncio.wait([heard], timeout=0.2)
        self.assertEqual(await heard, "hello over there")
        return viewer


async def listens(port: int, program: asyncio.subprocess.Process):
    """Waits until a program has bound a port."""
    async with asyncio.timeout(WAIT):
        while is_free(port):
            if program.returncode is not None:
                errors = await program.stderr.read() if program.stderr else b""
                raise AssertionError(f"the program ended with status {program.returncode}: {errors.decode()}")
            await asyncio.sleep(0.02)


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def free_pair() -> int:
    """An even port that is free, as is the one after it."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1] & ~1
        if is_free(port) and is_free(port + 1):
            return port


if __name__ == "__main__":
    unittest.main()
