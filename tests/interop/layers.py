"""Somebody who publishes a picture in three sizes: encoded by ffmpeg, sent over aiortc, which has no simulcast of its own."""

import asyncio
import contextlib
import re
import shutil

from aiortc import RTCSessionDescription, VideoStreamTrack

from janus import Handle
from test_forward import ROOM, Member, free_pair

SIZES = [(160, 90), (320, 180), (640, 360)]
SSRCS = [7_000_001, 7_000_002, 7_000_003]


class Nothing(VideoStreamTrack):
    """A track that never has a frame: what is sent on its m-line comes from elsewhere."""

    async def recv(self):
        await asyncio.Event().wait()


class Encoder(asyncio.DatagramProtocol):
    """A size of the picture, with a keyframe each second, as RTP."""

    def __init__(self, size: tuple[int, int], take):
        self.size, self.take = size, take

    def datagram_received(self, data: bytes, _):
        self.take(data)

    async def start(self, stack: contextlib.AsyncExitStack):
        port = free_pair()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", port))
        stack.callback(transport.close)
        width, height = self.size
        process = await asyncio.create_subprocess_exec(
            shutil.which("ffmpeg"), "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi",
            "-i", f"testsrc2=size={width}x{height}:rate=15", "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8",
            "-b:v", f"{width // 4}k", "-g", "15", "-f", "rtp", f"rtp://127.0.0.1:{port}?pkt_size=1200",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL)
        stack.callback(process.kill)


class Layered(Member):
    """Publishes three encodings, told apart by the SSRCs of a group."""

    def __init__(self, handle: Handle, stack: contextlib.AsyncExitStack):
        super().__init__(handle, stack)
        self.stack = stack
        self.packets: asyncio.Queue = asyncio.Queue()

    async def publish(self) -> list:
        sender = self.connection.addTrack(Nothing())
        await self.connection.setLocalDescription(await self.connection.createOffer())
        join = {"request": "joinandconfigure", "room": ROOM, "ptype": "publisher", "id": 1}
        offer = {"type": "offer", "sdp": with_layers(self.connection.localDescription.sdp)}
        event = await self.handle.message(join, offer)
        answer = event["jsep"]
        await self.connection.setRemoteDescription(RTCSessionDescription(**answer))
        await self.until("webrtcup")
        payload_type = int(re.search(r"m=video \d+ \S+ (\d+)", answer["sdp"])[1])
        for size, ssrc in zip(SIZES, SSRCS):
            encoder = Encoder(size, lambda packet, ssrc=ssrc: self.packets.put_nowait(renamed(packet, payload_type, ssrc)))
            await encoder.start(self.stack)
        sending = asyncio.create_task(self.send(sender.transport))
        self.stack.callback(sending.cancel)
        return event["plugindata"]["data"]["streams"]

    async def send(self, transport):
        # The server may have ended the connection.
        with contextlib.suppress(ConnectionError):
            while True:
                await transport._send_rtp(await self.packets.get())


def with_layers(sdp: str) -> str:
    """An offer whose SSRCs are those of three encodings, the smallest first."""
    lines = [line for line in sdp.splitlines() if not line.startswith("a=ssrc")]
    lines.append("a=ssrc-group:SIM " + " ".join(map(str, SSRCS)))
    lines += [f"a=ssrc:{ssrc} cname:layers" for ssrc in SSRCS]
    return "".join(f"{line}\r\n" for line in lines)


def renamed(packet: bytes, payload_type: int, ssrc: int) -> bytes:
    """A packet of a stream as one of another."""
    marker = packet[1] & 0x80
    return packet[:1] + bytes([marker | payload_type]) + packet[2:8] + ssrc.to_bytes(4, "big") + packet[12:]
