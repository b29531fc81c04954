"""aiortc and the server: another ICE, DTLS, SRTP and SCTP than the browsers', with AES-CM and its own certificate."""

import asyncio
import contextlib
import fractions
import unittest

import aiohttp
import av
from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import AudioStreamTrack

from janus import Handle
from server import Server

WAIT = 40


class Tone(AudioStreamTrack):
    """Sound that is not silence, so that no encoder leaves it out."""

    async def recv(self):
        frame = await super().recv()
        samples = frame.samples
        noise = bytes((index * 37) & 0xFF for index in range(2 * samples))
        loud = av.AudioFrame(format="s16", layout="mono", samples=samples)
        loud.planes[0].update(noise)
        loud.pts, loud.sample_rate, loud.time_base = frame.pts, frame.sample_rate, fractions.Fraction(1, frame.sample_rate)
        return loud


class Peer:
    """A PeerConnection of aiortc's at the echo test."""

    def __init__(self):
        self.connection = RTCPeerConnection()
        self.received = {}
        self.connection.on("track", lambda track: self.received.__setitem__(track.kind, track))

    async def echo(self, handle: Handle, body: dict | None = None):
        await self.connection.setLocalDescription(await self.connection.createOffer())
        offer = self.connection.localDescription
        event = await handle.message(body or {"audio": True, "video": True}, {"type": offer.type, "sdp": offer.sdp})
        assert event["plugindata"]["data"]["result"] == "ok", event
        await self.connection.setRemoteDescription(RTCSessionDescription(**event["jsep"]))

    async def frames(self, kind: str, count: int):
        return [await asyncio.wait_for(self.received[kind].recv(), WAIT) for _ in range(count)]


class EchoTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        server = await self.stack.enter_async_context(Server())
        http = await self.stack.enter_async_context(aiohttp.ClientSession())
        self.handle = await Handle.attach(http, server.http, "janus.plugin.echotest")
        self.stack.push_async_callback(self.handle.close)
        self.peer = Peer()
        self.stack.push_async_callback(self.peer.connection.close)

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def test_sound_and_picture_come_back(self):
        self.peer.connection.addTrack(Tone())
        self.peer.connection.addTrack(VideoStreamTrack())
        await self.peer.echo(self.handle)
        sound = await self.peer.frames("audio", 50)
        self.assertTrue(any(any(bytes(frame.planes[0])) for frame in sound), "only silence came back")
        picture = await self.peer.frames("video", 30)
        self.assertEqual((picture[-1].width, picture[-1].height), (640, 480))

    async def test_each_codec(self):
        for codec, name in [("vp8", "VP8"), ("h264", "H264")]:
            with self.subTest(codec):
                peer = Peer()
                peer.connection.addTrack(VideoStreamTrack())
                await peer.echo(self.handle, {"video": True, "videocodec": codec})
                self.assertIn(f" {name}/90000", peer.connection.remoteDescription.sdp)
                await peer.frames("video", 30)
                await peer.connection.close()
                await self.handle.message({"audio": True})
                while (await asyncio.wait_for(self.handle.events.get(), WAIT))["janus"] != "hangup":
                    pass

    async def test_data_comes_back(self):
        channel = self.peer.connection.createDataChannel("talk")
        messages: asyncio.Queue = asyncio.Queue()
        opened = asyncio.Event()
        channel.on("open", opened.set)
        channel.on("message", messages.put_nowait)
        await self.peer.echo(self.handle)
        await asyncio.wait_for(opened.wait(), WAIT)
        channel.send("hello")
        self.assertEqual(await asyncio.wait_for(messages.get(), WAIT), "Janus EchoTest here! You wrote: hello")
        binary = bytes(range(256)) * 100
        channel.send(binary)
        self.assertEqual(await asyncio.wait_for(messages.get(), WAIT), binary)

    async def test_the_server_notices_when_the_peer_leaves(self):
        self.peer.connection.addTrack(Tone())
        await self.peer.echo(self.handle)
        await self.peer.frames("audio", 5)
        await self.peer.connection.close()
        event = await asyncio.wait_for(self.handle.events.get(), WAIT)
        while event["janus"] != "hangup":
            event = await asyncio.wait_for(self.handle.events.get(), WAIT)
