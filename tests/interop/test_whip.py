"""WHIP and WHEP with what people have: ffmpeg, GStreamer, aiortc."""

import asyncio
import contextlib
import os
import unittest

import aiohttp
from aiortc import VideoStreamTrack

from server import Server
from test_echo import Tone
from whip import WAIT, Client, Refused, gstreamer, gstreamer_program, publishing_ffmpeg, publishing_like_obs

CONFIG = """
[[streaming.mountpoint]]
name = "stage"
type = "whip"
id = 7
token = "let-me-in"
bufferkf_ms = 10000
[[streaming.mountpoint.media]]
type = "audio"
mid = "a"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"
"""
TOKEN = "let-me-in"


@unittest.skipIf("REFERENCE_HTTP" in os.environ, "needs mountpoints of its own")
class WhipTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        server = await self.stack.enter_async_context(Server(CONFIG))
        self.http = await self.stack.enter_async_context(aiohttp.ClientSession())
        self.whip, self.whep = f"{server.base}/whip/7", f"{server.base}/whep/7"

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def play(self, *kinds: str) -> Client:
        """A viewer, as soon as somebody publishes."""
        async with asyncio.timeout(WAIT):
            while True:
                viewer = Client(self.http)
                try:
                    await viewer.play(self.whep, *kinds)
                except Refused as refused:
                    await viewer.connection.close()
                    if refused.status != 409:
                        raise
                    await asyncio.sleep(0.1)
                else:
                    self.stack.push_async_callback(viewer.connection.close)
                    return viewer

    async def test_aiortc_publishes_and_plays(self):
        publisher = Client(self.http, TOKEN)
        await publisher.publish(self.whip, Tone(), VideoStreamTrack())
        viewer = await self.play("audio", "video")
        picture = await viewer.frames("video", 20)
        self.assertEqual((picture[-1].width, picture[-1].height), (640, 480))
        await viewer.frames("audio", 20)
        self.assertEqual(await viewer.end(), 200)
        self.assertEqual(await publisher.end(), 200)

    async def test_a_token_is_needed_and_there_is_one_publisher(self):
        for token in (None, "wrong"):
            with self.assertRaises(Refused) as refused:
                await Client(self.http, token).publish(self.whip, VideoStreamTrack())
            self.assertEqual(refused.exception.status, 401)
        first = Client(self.http, TOKEN)
        await first.publish(self.whip, VideoStreamTrack())
        with self.assertRaises(Refused) as refused:
            await Client(self.http, TOKEN).publish(self.whip, VideoStreamTrack())
        self.assertEqual(refused.exception.status, 409)
        await first.end()

    async def test_ffmpeg_publishes_twice(self):
        for _ in range(2):
            async with publishing_ffmpeg(self.whip, TOKEN):
                viewer = await self.play("audio", "video")
                picture = await viewer.frames("video", 30)
                self.assertEqual((picture[-1].width, picture[-1].height), (320, 180))
                await viewer.frames("audio", 30)
                await viewer.end()

    async def test_the_library_of_obs_publishes(self):
        async with publishing_like_obs(self.whip, TOKEN):
            viewer = await self.play("audio", "video")
            picture = await viewer.frames("video", 30)
            self.assertEqual((picture[-1].width, picture[-1].height), (320, 180))
            await viewer.frames("audio", 30)
            await viewer.end()

    @unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
    async def test_gstreamers_whipclientsink_publishes(self):
        publish = (
            "videotestsrc is-live=true ! video/x-raw,width=320,height=180 ! queue ! s.video_0 "
            "audiotestsrc is-live=true wave=ticks ! queue ! s.audio_0 "
            f"whipclientsink name=s signaller::whip-endpoint={self.whip} signaller::auth-token={TOKEN}"
        )
        async with gstreamer(publish):
            viewer = await self.play("audio", "video")
            picture = await viewer.frames("video", 30)
            self.assertEqual((picture[-1].width, picture[-1].height), (320, 180))
            await viewer.frames("audio", 30)
            await viewer.end()

    @unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
    async def test_gstreamer_publishes_and_plays(self):
        publish = (
            "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=30/1 ! "
            "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=30 ! rtpvp8pay ! "
            "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000 ! sink.sink_0 "
            "audiotestsrc is-live=true ! audioconvert ! audioresample ! opusenc ! rtpopuspay ! "
            "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,"
            "encoding-params=(string)2 ! sink.sink_1 "
            f"whipsink name=sink whip-endpoint={self.whip} auth-token={TOKEN}"
        )
        play = (
            f"whepsrc name=src whep-endpoint={self.whep} "
            'video-caps="application/x-rtp,media=video,encoding-name=VP8,payload=101,clock-rate=90000" '
            'audio-caps="application/x-rtp,media=audio,encoding-name=OPUS,payload=96,clock-rate=48000" '
            "src. ! application/x-rtp,media=video ! rtpvp8depay ! vp8dec ! identity eos-after=30 ! fakesink "
            "src. ! application/x-rtp,media=audio ! rtpopusdepay ! opusdec ! fakesink async=false"
        )
        async with gstreamer(publish):
            viewer = await self.play("audio", "video")
            picture = await viewer.frames("video", 30)
            self.assertEqual((picture[-1].width, picture[-1].height), (320, 180))
            await viewer.frames("audio", 30)
            await viewer.end()
            async with gstreamer(play) as player:
                self.assertEqual(await asyncio.wait_for(player.wait(), WAIT), 0)
