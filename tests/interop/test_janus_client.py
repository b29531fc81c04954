"""PyPI's janus-client over WebSocket, as its users call it."""

import asyncio
import contextlib
import logging
import pathlib
import subprocess
import tempfile
import unittest

from aiortc.contrib.media import MediaPlayer
from janus_client import JanusEchoTestPlugin, JanusSession, JanusVideoRoomPlugin

from server import Server

WAIT = 40
# A busy machine lets the client read late: this is more than the default, with which it works where there is little else to do.
PAUSE = "[server]\nack_pause_ms = 20\n"
ROOM = 4321
FEED = 7


class JanusClient(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # It has each message logged, and each check of ICE.
        logging.getLogger().setLevel(logging.WARNING)
        self.stack = contextlib.AsyncExitStack()
        self.server = await self.stack.enter_async_context(Server(PAUSE))
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.film = str(self.folder / "film.webm")
        subprocess.run(
            ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=15", "-f", "lavfi", "-i", "sine",
             "-t", "20", "-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libopus", self.film],
            check=True,
        )

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def session(self) -> JanusSession:
        return await self.stack.enter_async_context(JanusSession(base_url=self.server.ws))

    async def test_the_echo_test_answers_each_time(self):
        """It gives a transaction up when it has read the ack, and would lose an answer that it reads in the same moment."""
        session = await self.session()
        for attempt in range(5):
            with self.subTest(attempt):
                plugin = JanusEchoTestPlugin()
                await plugin.attach(session)
                # Without a file to record to it fails at the first event of media.
                await plugin.start(play_from=self.film, record_to=str(self.folder / f"echo-{attempt}.mp4"))
                await asyncio.wait_for(plugin.wait_webrtcup(), WAIT)
                await self.media(plugin)
                await plugin.close_stream()
                await plugin.destroy()

    async def media(self, plugin: JanusEchoTestPlugin):
        """Waits until sound and picture come back."""
        async with asyncio.timeout(WAIT):
            while True:
                stats = (await plugin.pc.getStats()).values()
                came = {it.kind for it in stats if it.type == "inbound-rtp" and it.packetsReceived > 10}
                if came == {"audio", "video"}:
                    return
                await asyncio.sleep(0.02)

    async def test_a_room_is_published_to_and_watched(self):
        publisher = JanusVideoRoomPlugin()
        await publisher.attach(await self.session())
        await publisher.create_room(room_id=ROOM)
        await publisher.join_as_publisher(ROOM, publisher_id=FEED, display="janus-client")
        await publisher.publish(MediaPlayer(self.film))
        await asyncio.wait_for(publisher.webrtcup_event.wait(), WAIT)

        viewer = JanusVideoRoomPlugin()
        await viewer.attach(await self.session())
        tracks = {}
        viewer.pc.on("track", lambda track: tracks.__setitem__(track.kind, track))
        await viewer.subscribe_to_publisher(ROOM, streams=[{"feed": FEED}])
        for kind in ("audio", "video"):
            for _ in range(10):
                await asyncio.wait_for(tracks[kind].recv(), WAIT)
        await viewer.destroy()
        await publisher.destroy()
