"""Clients of WHIP and WHEP: aiortc by hand, ffmpeg's muxer by PyAV, GStreamer's elements by tests/gstreamer, OBS's library."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest
import urllib.parse

import aiohttp
import av
from aiortc import RTCPeerConnection, RTCSessionDescription

from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT = 40


class Refused(Exception):
    """The server has refused the request, with this status."""

    def __init__(self, status: int, detail: str):
        super().__init__(f"{status}: {detail}")
        self.status = status


class Client:
    """A PeerConnection of aiortc's that publishes or plays."""

    def __init__(self, http: aiohttp.ClientSession, token: str | None = None):
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection = RTCPeerConnection()
        self.received: dict = {}
        self.connection.on("track", lambda track: self.received.__setitem__(track.kind, track))
        self.resource = None

    async def publish(self, endpoint: str, *tracks):
        for track in tracks:
            self.connection.addTransceiver(track, direction="sendonly")
        await self._offer(endpoint)

    async def play(self, endpoint: str, *kinds: str):
        for kind in kinds:
            self.connection.addTransceiver(kind, direction="recvonly")
        await self._offer(endpoint)

    async def frames(self, kind: str, count: int) -> list:
        return [await asyncio.wait_for(self.received[kind].recv(), WAIT) for _ in range(count)]

    async def end(self) -> int:
        status = await self.delete()
        await self.connection.close()
        return status

    async def delete(self) -> int:
        """Ends the resource; gives the status of the answer."""
        async with self._http.delete(self.resource, headers=self._headers) as answer:
            return answer.status

    async def _offer(self, endpoint: str):
        await self.connection.setLocalDescription(await self.connection.createOffer())
        headers = self._headers | {"Content-Type": "application/sdp"}
        body = self.connection.localDescription.sdp
        async with self._http.post(endpoint, data=body, headers=headers) as answer:
            if answer.status != 201:
                raise Refused(answer.status, (await answer.json(content_type=None))["detail"])
            self.resource = urllib.parse.urljoin(endpoint, answer.headers["Location"])
            sdp = await answer.text()
        await self.connection.setRemoteDescription(RTCSessionDescription(sdp, "answer"))


class WhipTestCase(unittest.IsolatedAsyncioTestCase):
    """Tests with a server of their own, and clients of it that end with the test."""

    config = ""

    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        self.server = await self.stack.enter_async_context(Server(self.config))
        self.http = await self.stack.enter_async_context(aiohttp.ClientSession())

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def play(self, endpoint: str, *kinds: str, token: str | None = None) -> Client:
        """A viewer, as soon as there is something to watch."""
        async with asyncio.timeout(WAIT):
            while True:
                viewer = Client(self.http, token)
                try:
                    await viewer.play(endpoint, *kinds)
                except Refused as refused:
                    await viewer.connection.close()
                    if refused.status != 409:
                        raise
                    await asyncio.sleep(0.1)
                else:
                    self.stack.push_async_callback(viewer.connection.close)
                    return viewer

    async def watch(self, viewer: Client, width: int, height: int, frames: int = 30, audio: bool = True):
        """Waits until a picture of this size moves for the viewer, and sound comes."""
        picture = await viewer.frames("video", frames)
        self.assertEqual((picture[-1].width, picture[-1].height), (width, height))
        if audio:
            await viewer.frames("audio", frames)


# What GStreamer publishes by whipsink and plays by whepsrc.
VP8_SOURCE = (
    "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=30/1 ! "
    "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=30 ! rtpvp8pay ! "
    "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000 ! sink.sink_0 "
)
WHEP_CAPS = (
    'video-caps="application/x-rtp,media=video,encoding-name=VP8,payload=101,clock-rate=90000" '
    'audio-caps="application/x-rtp,media=audio,encoding-name=OPUS,payload=96,clock-rate=48000" '
)
# Whose pads tests/gstreamer links to what is named as their media.
VP8_SINK = "rtpvp8depay name=video ! vp8dec ! identity eos-after=30 ! fakesink "
OPUS_SINK = "rtpopusdepay name=audio ! opusdec ! fakesink async=false "


def ffmpeg(endpoint: str, token: str | None, seconds: float, stop) -> None:
    """Publishes H.264 and Opus by ffmpeg's WHIP muxer, until `stop()` or for some seconds. It blocks."""
    options = {"authorization": token} if token else {}
    with av.open(endpoint, "w", format="whip", options=options) as output:
        video = output.add_stream("libx264", rate=30)
        video.width, video.height, video.pix_fmt = 320, 180, "yuv420p"
        video.codec_context.options = {"profile": "baseline", "preset": "ultrafast", "tune": "zerolatency", "g": "30"}
        audio = output.add_stream("libopus", rate=48000)
        audio.layout = "stereo"
        start = time.monotonic()
        samples = 0
        for number in range(int(seconds * 30)):
            if stop():
                return
            picture = av.VideoFrame(320, 180, "yuv420p")
            for plane in picture.planes:
                plane.update(bytes([number * 3 % 256]) * plane.buffer_size)
            picture.pts = number
            output.mux(video.encode(picture))
            while samples < (number + 1) * 1600:
                sound = av.AudioFrame(format="flt", layout="stereo", samples=960)
                sound.sample_rate, sound.pts = 48000, samples
                for plane in sound.planes:
                    plane.update(bytes(plane.buffer_size))
                output.mux(audio.encode(sound))
                samples += 960
            time.sleep(max(0.0, start + number / 30 - time.monotonic()))


@contextlib.asynccontextmanager
async def publishing_ffmpeg(endpoint: str, token: str | None = None):
    """ffmpeg publishes for as long as the block lasts, then ends in an orderly way."""
    done = False
    work = asyncio.create_task(asyncio.to_thread(ffmpeg, endpoint, token, 120, lambda: done))
    try:
        yield work
    finally:
        done = True
        await asyncio.wait_for(work, WAIT)


@contextlib.asynccontextmanager
async def publishing_like_obs(endpoint: str, token: str):
    """Publishes by libdatachannel for as long as the block lasts, then ends in an orderly way."""
    program = [shutil.which("node"), str(ROOT / "tests/interop/publish_like_obs.mjs"), endpoint, token]
    process = await asyncio.create_subprocess_exec(*program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.stdin.close()
        status = await asyncio.wait_for(process.wait(), WAIT)
        if status != 0:
            raise RuntimeError(f"the publisher ended with status {status}")


def gstreamer_program() -> pathlib.Path | None:
    """tests/gstreamer, if scripts/setup has built it."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "gstreamer/debug/portunus-gstreamer"
    return program if program.exists() else None


@contextlib.asynccontextmanager
async def gstreamer(pipeline: str, stdout=None):
    """A pipeline that ends with the block in an orderly way."""
    process = await asyncio.create_subprocess_exec(
        str(gstreamer_program()), pipeline, stdin=subprocess.PIPE, stdout=stdout, stderr=sys.stderr
    )
    try:
        yield process
    finally:
        process.stdin.close()
        status = await asyncio.wait_for(process.wait(), WAIT)
        if status != 0:
            raise RuntimeError(f"GStreamer ended with status {status}")
