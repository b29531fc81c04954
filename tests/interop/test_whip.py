"""WHIP and WHEP with what people have: ffmpeg, GStreamer, aiortc."""

import asyncio
import os
import unittest

from aiortc import VideoStreamTrack

from test_echo import Tone
from whip import (
    OPUS_SINK, VP8_SINK, VP8_SOURCE, WAIT, WHEP_CAPS, Client, Refused, WhipTestCase, gstreamer, gstreamer_program,
    publishing_ffmpeg, publishing_like_obs,
)

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
class WhipTest(WhipTestCase):
    config = CONFIG

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.whip, self.whep = f"{self.server.base}/whip/7", f"{self.server.base}/whep/7"

    async def test_aiortc_publishes_and_plays(self):
        publisher = Client(self.http, TOKEN)
        await publisher.publish(self.whip, Tone(), VideoStreamTrack())
        viewer = await self.play(self.whep, "audio", "video")
        await self.watch(viewer, 640, 480, frames=20)
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
                viewer = await self.play(self.whep, "audio", "video")
                await self.watch(viewer, 320, 180)
                await viewer.end()

    async def test_the_library_of_obs_publishes(self):
        async with publishing_like_obs(self.whip, TOKEN):
            viewer = await self.play(self.whep, "audio", "video")
            await self.watch(viewer, 320, 180)
            await viewer.end()

    @unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
    async def test_gstreamers_whipclientsink_publishes(self):
        publish = (
            "videotestsrc is-live=true ! video/x-raw,width=320,height=180 ! queue ! s.video_0 "
            "audiotestsrc is-live=true wave=ticks ! queue ! s.audio_0 "
            f"whipclientsink name=s signaller::whip-endpoint={self.whip} signaller::auth-token={TOKEN}"
        )
        async with gstreamer(publish):
            viewer = await self.play(self.whep, "audio", "video")
            await self.watch(viewer, 320, 180)
            await viewer.end()

    @unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
    async def test_gstreamer_publishes_and_plays(self):
        publish = (
            f"{VP8_SOURCE}"
            "audiotestsrc is-live=true ! audioconvert ! audioresample ! opusenc ! rtpopuspay ! "
            "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,"
            "encoding-params=(string)2 ! sink.sink_1 "
            f"whipsink name=sink whip-endpoint={self.whip} auth-token={TOKEN}"
        )
        play = f"whepsrc name=whep whep-endpoint={self.whep} {WHEP_CAPS} {VP8_SINK} {OPUS_SINK}"
        async with gstreamer(publish):
            viewer = await self.play(self.whep, "audio", "video")
            await self.watch(viewer, 320, 180)
            await viewer.end()
            async with gstreamer(play) as player:
                self.assertEqual(await asyncio.wait_for(player.wait(), WAIT), 0)
