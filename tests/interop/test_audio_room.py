"""An audio room with GStreamer: telephones by plain RTP, talkers by WHIP, listeners by WHEP. aiortc is in the room as well."""

import asyncio
import contextlib
import subprocess
import unittest
from collections.abc import AsyncIterator

from audio_room import ROOM, AudioRoomTestCase
from sound import TONES, VOICE, Ear
from test_forward import free_pair
from whip import gstreamer, gstreamer_program

#: How GStreamer talks and listens with each codec: what is told of it, and how it is encoded and decoded.
CODECS = {
    "pcmu": (0, "PCMU", 8_000, "mulawenc ! rtppcmupay min-ptime=20000000 max-ptime=20000000", "rtppcmudepay ! mulawdec"),
    "pcma": (8, "PCMA", 8_000, "alawenc ! rtppcmapay min-ptime=20000000 max-ptime=20000000", "rtppcmadepay ! alawdec"),
    "opus": (100, "OPUS", 48_000, "opusenc ! rtpopuspay pt=100", "rtpopusdepay ! opusdec"),
}
#: Raw samples on the standard output.
TO_EAR = "audioconvert ! audioresample ! audio/x-raw,format=S16LE,rate=16000,channels=1 ! fdsink fd=1 sync=false async=false"


def tone(name: str, rate: int = 48_000) -> str:
    """Somebody who talks."""
    sound = f"audio/x-raw,rate={rate},channels=1"
    return f"audiotestsrc is-live=true freq={TONES[name]} volume={VOICE} samplesperbuffer={rate // 50} ! {sound}"


@contextlib.asynccontextmanager
async def listening(who: str, pipeline: str) -> AsyncIterator[Ear]:
    """A pipeline that writes what it hears."""
    async with gstreamer(pipeline, subprocess.PIPE) as process:
        ear = Ear(who, 16_000)
        reading = asyncio.create_task(ear.read(process.stdout))
        yield ear
    await reading


@unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
class PlainRtpTest(AudioRoomTestCase):
    options = {"allow_rtp_participants": True}

    async def test_gstreamer_talks_and_listens_by_plain_rtp(self):
        ann, ben = await self.member("ann"), await self.member("ben")
        for codec in CODECS:
            with self.subTest(codec):
                await self.call(ann, ben, codec)

    async def call(self, ann, ben, codec: str):
        """Cleo calls, talks and listens, and hangs up."""
        pt, encoding, rate, encoder, decoder = CODECS[codec]
        port = free_pair()
        handle = await self.attach()
        join = {"request": "join", "room": ROOM, "display": "cleo", "codec": codec, "rtp": {"ip": "127.0.0.1", "port": port}}
        joined = (await handle.message(join))["plugindata"]["data"]
        self.assertEqual((joined["audiobridge"], joined["rtp"]["payload_type"]), ("joined", pt))
        to = joined["rtp"]["port"]
        caps = f"application/x-rtp,media=audio,encoding-name={encoding},payload={pt},clock-rate={rate}"
        pipeline = (
            f"{tone('cleo', rate)} ! {encoder} ! udpsink name=out async=false host=127.0.0.1 port={to} "
            f"udpsrc name=in address=127.0.0.1 port={port} caps={caps} ! rtpjitterbuffer latency=60 ! {decoder} ! {TO_EAR}")
        async with listening(f"cleo with {codec}", pipeline) as cleo:
            await cleo.hears("ann", "ben")
            await ann.ear.hears("ben", "cleo")
            await ben.ear.hears("ann", "cleo")
            shown = (await self.people())["cleo"]
            self.assertEqual((shown["setup"], shown["muted"]), (True, False))
            await self.manage("mute", id=shown["id"])
            await ann.ear.hears("ben")
            await cleo.hears("ann", "ben")
            left = (await handle.message({"request": "leave"}))["plugindata"]["data"]
            self.assertEqual(left["audiobridge"], "left")
            self.assertNotIn("cleo", await self.people())


@unittest.skipUnless(gstreamer_program(), "tests/gstreamer is not built")
class WhipTest(AudioRoomTestCase):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.whip, self.whep = (f"{self.server.base}/{way}/audiobridge/{ROOM}" for way in ("whip", "whep"))

    async def test_gstreamer_listens_by_whep(self):
        ann = await self.member("ann")
        play = (
            f"whepsrc name=whep whep-endpoint={self.whep} "
            "audio-caps=application/x-rtp,media=audio,encoding-name=OPUS,payload=96,clock-rate=48000 "
            f"rtpopusdepay name=audio ! opusdec ! {TO_EAR}")
        async with listening("whepsrc", play) as ear:
            await ear.hears("ann")
            ben = await self.member("ben")
            await ear.hears("ann", "ben")
            self.assertEqual(set(await self.people()), {"ann", "ben"})
            [room] = (await self.manage("list"))["list"]
            self.assertEqual(room["num_listeners"], 1)
            await ben.handle.message({"request": "configure", "muted": True})
            await ear.hears("ann")
            await self.manage("mute", id=ann.id)
            await ear.hears()

    async def test_gstreamer_talks_by_whip(self):
        ann = await self.member("ann")
        for element, line in {
            "whipsink":
                f"{tone('cleo')} ! opusenc ! rtpopuspay ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97,"
                "clock-rate=48000,encoding-params=(string)2 ! sink.sink_0 "
                f"whipsink name=sink whip-endpoint={self.whip}/42?display=Camera",
            "whipclientsink":
                f"{tone('cleo')} ! queue ! sink.audio_0 "
                f"whipclientsink name=sink signaller::whip-endpoint={self.whip}/42?display=Camera",
        }.items():
            with self.subTest(element):
                async with gstreamer(line):
                    shown = await self.until(self.camera)
                    self.assertEqual((shown["id"], shown["setup"]), (42, True))
                    await ann.ear.hears("cleo")
                # It has deleted its resource.
                self.assertEqual(set(await self.people()), {"ann"})

    async def camera(self) -> dict | None:
        """What came by WHIP, once its media flows."""
        shown = (await self.people()).get("Camera")
        return shown if shown and shown["setup"] else None
