"""Clients of WHIP and WHEP: aiortc by hand, ffmpeg's muxer by PyAV, GStreamer's elements by tests/gstreamer, OBS's library."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.parse

import aiohttp
import av
from aiortc import RTCPeerConnection, RTCSessionDescription

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT = 20


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
async def gstreamer(pipeline: str):
    """A pipeline that ends with the block in an orderly way."""
    process = await asyncio.create_subprocess_exec(
        str(gstreamer_program()), pipeline, stdin=subprocess.PIPE, stderr=sys.stderr
    )
    try:
        yield process
    finally:
        process.stdin.close()
        status = await asyncio.wait_for(process.wait(), WAIT)
        if status != 0:
            raise RuntimeError(f"GStreamer ended with status {status}")
