"""WHIP into a video room, and WHEP of one publisher or of all: ffmpeg, GStreamer, aiortc, and the Janus API beside them."""

import asyncio
import os
import unittest

from aiortc import RTCSessionDescription, VideoStreamTrack

from janus import Handle
from test_echo import Tone
from whip import (
    VP8_SINK, VP8_SOURCE, WAIT, WHEP_CAPS, Client, Refused, WhipTestCase, gstreamer, gstreamer_program,
    publishing_ffmpeg,
)

CONFIG = """
[[videoroom.room]]
room = 1234
pin = "1234"
secret = "hush"
publishers = 2
videocodec = "vp8,h264"
notify_joining = true
"""
PIN = "1234"
PACKAGE = "janus.plugin.videoroom"


@unittest.skipIf("REFERENCE_HTTP" in os.environ, "needs a room of its own")
class WhipRoomTest(WhipTestCase):
    config = CONFIG

    async def asyncSetUp(self):
        await super().asyncSetUp()
        base = self.server.base
        self.whip, self.whep = f"{base}/whip/videoroom/1234", f"{base}/whep/videoroom/1234"

    async def attach(self) -> Handle:
        """A client of the Janus API."""
        handle = await Handle.attach(self.http, self.server.http, PACKAGE)
        self.stack.push_async_callback(handle.close)
        return handle

    async def subscribe(self, feed: int) -> Client:
        """A subscriber of the Janus API."""
        janus = await self.attach()
        join = {"request": "join", "ptype": "subscriber", "room": 1234, "pin": PIN, "streams": [{"feed": feed}]}
        attached = await janus.message(join)
        viewer = Client(self.http)
        self.stack.push_async_callback(viewer.connection.close)
        await viewer.connection.setRemoteDescription(RTCSessionDescription(attached["jsep"]["sdp"], "offer"))
        await viewer.connection.setLocalDescription(await viewer.connection.createAnswer())
        answer = {"type": "answer", "sdp": viewer.connection.localDescription.sdp}
        await janus.message({"request": "start"}, answer)
        return viewer

    async def test_others_are_told_and_subscribe(self):
        janus = await self.attach()
        await janus.message({"request": "join", "ptype": "publisher", "room": 1234, "pin": PIN, "id": 1})
        publisher = Client(self.http, PIN)
        await publisher.publish(f"{self.whip}/42?display=The+camera", Tone(), VideoStreamTrack())
        joining = await janus.told("joining")
        self.assertEqual(joining["joining"], {"id": 42, "display": "The camera"})
        published = (await janus.told("publishers"))["publishers"][0]
        self.assertEqual((published["id"], published["video_codec"]), (42, "vp8"))
        viewer = await self.subscribe(42)
        await self.watch(viewer, 640, 480, frames=20)
        self.assertEqual(await publisher.end(), 200)
        self.assertEqual((await janus.told("unpublished"))["unpublished"], 42)
        self.assertEqual((await janus.told("leaving"))["leaving"], 42)

    async def test_a_pin_is_needed_and_ids_and_places_are_taken_once(self):
        for token in (None, "wrong"):
            for endpoint in (self.whip, f"{self.whip}?display=x"):
                with self.assertRaises(Refused) as refused:
                    await Client(self.http, token).publish(endpoint, VideoStreamTrack())
                self.assertEqual(refused.exception.status, 401)
        with self.assertRaises(Refused) as refused:
            await Client(self.http, PIN).play(f"{self.whep}/42", "video")
        self.assertEqual(refused.exception.status, 409)
        with self.assertRaises(Refused) as refused:
            await Client(self.http, PIN).play(f"{self.server.base}/whep/videoroom/9", "video")
        self.assertEqual(refused.exception.status, 404)
        by_query = Client(self.http)
        await by_query.publish(f"{self.whip}/42?pin={PIN}", VideoStreamTrack())
        with self.assertRaises(Refused) as refused:
            await Client(self.http, PIN).publish(f"{self.whip}/42", VideoStreamTrack())
        self.assertEqual(refused.exception.status, 409)
        by_secret = Client(self.http, "hush")
        await by_secret.publish(self.whip, VideoStreamTrack())
        with self.assertRaises(Refused) as refused:
            await Client(self.http, PIN).publish(self.whip, VideoStreamTrack())
        self.assertEqual(refused.exception.status, 409)
        for publisher in (by_query, by_secret):
            self.assertEqual(await publisher.end(), 200)

    async def test_ffmpeg_publishes_and_is_watched_by_whep(self):
        for _ in range(2):
            async with publishing_ffmpeg(f"{self.whip}/42", PIN):
                viewer = await self.play(f"{self.whep}/42", "audio", "video", token=PIN)
                await self.watch(viewer, 320, 180)
                self.assertEqual(await viewer.end(), 200)

    async def test_a_room_is_watched_before_anybody_publishes(self):
        viewer = await self.play(self.whep, "audio", "video", token=PIN)
        for _ in range(2):
            publisher = Client(self.http, PIN)
            await publisher.publish(f"{self.whip}/42", Tone(), VideoStreamTrack())
            await self.watch(viewer, 640, 480, frames=20)
            await publisher.end()
        self.assertEqual(await viewer.end(), 200)

    async def test_a_kick_ends_the_publisher_s_resource(self):
        janus = await self.attach()
        await janus.message({"request": "join", "ptype": "publisher", "room": 1234, "pin": PIN, "id": 1})
        publisher = Client(self.http, PIN)
        await publisher.publish(f"{self.whip}/42", VideoStreamTrack())
        await janus.told("publishers")
        await janus.manage({"request": "kick", "room": 1234, "secret": "hush", "id": 42})
        self.assertEqual((await janus.told("kicked"))["kicked"], 42)
        async with asyncio.timeout(WAIT):
            while publisher.connection.connectionState == "connected":
                await asyncio.sleep(0.1)
        # Whoever deletes what has ended already has what it wants.
        self.assertEqual(await publisher.delete(), 200)
        await publisher.connection.close()

    @unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
    async def test_gstreamer_publishes_and_plays(self):
        publish = f"{VP8_SOURCE} whipsink name=sink whip-endpoint={self.whip}/42 auth-token={PIN}"
        play = f"whepsrc name=whep whep-endpoint={self.whep} auth-token={PIN} {WHEP_CAPS} {VP8_SINK}"
        async with gstreamer(publish):
            viewer = await self.play(f"{self.whep}/42", "video", token=PIN)
            await self.watch(viewer, 320, 180, audio=False)
            await viewer.end()
            async with gstreamer(play) as player:
                self.assertEqual(await asyncio.wait_for(player.wait(), WAIT), 0)
