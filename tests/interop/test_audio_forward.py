"""RTP forwarders of an audio room: ffmpeg decodes what is sent, and who is heard in it is told apart by tones."""

import asyncio
import base64
import pathlib
import shutil
import subprocess
import tempfile

from audio_room import AudioRoomTestCase
from sound import TONES, Ear, program
from test_forward import free_pair, listens

KEY = base64.b64encode(bytes(range(30))).decode()
RTPMAP = {"opus": (100, "opus/48000/2"), "pcmu": (0, "PCMU/8000"), "pcma": (8, "PCMA/8000")}


class ForwardTestCase(AudioRoomTestCase):
    async def ffmpeg(self, codec: str = "opus", suite: int | None = None, channels: int = 1, **members) -> Ear:
        """Forwards to a port where ffmpeg listens."""
        port = free_pair()
        pt, encoding = RTPMAP[codec]
        crypto = f"a=crypto:1 AES_CM_128_HMAC_SHA1_{suite} inline:{KEY}\r\n" if suite else ""
        sdp = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "forwarded.sdp"
        sdp.write_text(
            f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
            f"m=audio {port} {'RTP/SAVP' if suite else 'RTP/AVP'} {pt}\r\na=rtpmap:{pt} {encoding}\r\n{crypto}")
        ear = await self.stack.enter_async_context(program(
            f"ffmpeg with {codec} {suite or ''} {members}", shutil.which("ffmpeg"), "-v", "error",
            "-protocol_whitelist", "file,udp,rtp,srtp,crypto,pipe", "-analyzeduration", "200000", "-i", str(sdp),
            "-f", "s16le", "-ac", str(channels), "-ar", "16000", "-flush_packets", "1", "pipe:1", channels=channels))
        await listens(port, ear.process)
        srtp = {"srtp_suite": suite, "srtp_crypto": KEY} if suite else {}
        forwarder = await self.manage("rtp_forward", host="127.0.0.1", port=port, codec=codec, **srtp, **members)
        ear.stream = forwarder["stream_id"]
        return ear


class ForwardTest(ForwardTestCase):
    async def test_ffmpeg_hears_the_mix_in_each_codec_and_by_srtp(self):
        ann, _ = await self.member("ann"), await self.member("ben")
        ears = [
            await self.ffmpeg(),
            await self.ffmpeg("pcmu"),
            await self.ffmpeg("pcma"),
            await self.ffmpeg(suite=80),
            await self.ffmpeg(suite=32),
            await self.ffmpeg("pcmu", suite=80),
        ]
        for ear in ears:
            await ear.hears("ann", "ben")
            await ear.hears_whole("ann")
        await self.manage("mute", id=ann.id)
        for ear in ears:
            await ear.hears("ben")
        await self.manage("unmute", id=ann.id)
        for ear in ears:
            await ear.hears("ann", "ben")
        listed = (await self.manage("listforwarders"))["rtp_forwarders"]
        self.assertEqual({one["stream_id"] for one in listed}, {ear.stream for ear in ears})
        self.assertEqual(sorted(one["codec"] for one in listed if one.get("srtp")), ["opus", "opus", "pcmu"])
        for ear in ears:
            await self.manage("stop_rtp_forward", stream_id=ear.stream)
        self.assertEqual((await self.manage("listforwarders"))["rtp_forwarders"], [])


class SpatialForwardTest(ForwardTestCase):
    options = {"spatial_audio": True}

    async def test_ffmpeg_hears_each_at_a_place_in_a_stereo_room(self):
        await self.member("ann", spatial_position=0)
        await self.member("ben", spatial_position=100)
        await self.member("cleo")
        ear = await self.ffmpeg(channels=2)
        await ear.hears("ann", "cleo", channel=0)
        await ear.hears("ben", "cleo", channel=1)


class GroupForwardTest(ForwardTestCase):
    options = {"groups": ["hosts", "guests"]}

    async def asyncSetUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "bell.opus"
        tone = f"sine=frequency={TONES['file']}:sample_rate=48000:duration=2"
        subprocess.run(
            [shutil.which("ffmpeg"), "-v", "error", "-f", "lavfi", "-i", tone, "-c:a", "libopus", str(self.file)], check=True)
        self.config = f'[audiobridge]\nfolders = ["{folder.name}"]\n'
        await super().asyncSetUp()

    async def test_ffmpeg_hears_a_group_and_nobody_else(self):
        await self.member("ann", group="hosts")
        ben = await self.member("ben", group="guests")
        hosts, guests, all_of_them = await self.ffmpeg(group="hosts"), await self.ffmpeg(group="guests"), await self.ffmpeg()
        await hosts.hears("ann")
        await guests.hears("ben")
        await all_of_them.hears("ann", "ben")
        # An announcement is in the mix of its group, and in that of all.
        await self.manage("play_file", filename=str(self.file), file_id="bell", group="hosts", loop=True)
        await hosts.hears("ann", "file")
        await guests.hears("ben")
        await all_of_them.hears("ann", "ben", "file")
        await self.manage("stop_file", file_id="bell")
        # Who goes over to another group is heard there.
        await ben.handle.message({"request": "configure", "group": "hosts"})
        await hosts.hears("ann", "ben")
        await guests.hears()
        await all_of_them.hears("ann", "ben")
