"""Simulcast that leaves a room by other ways than to a subscriber: to ffmpeg, and into a room of another server. And the end
of what is forwarded."""

import asyncio
import contextlib
import shutil
import socket
import unittest

import aiohttp

from layers import SIZES, Layered
from server import Server
from test_forward import WAIT, Decoder, Member, Room, free_pair, listens


class Sizes(Decoder):
    """ffmpeg, which tells the size of each frame that it decodes: a stream may begin with a lower layer."""

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            shutil.which("ffmpeg"), "-hide_banner", "-nostats", "-protocol_whitelist", "file,udp,rtp", "-i", str(self.sdp),
            "-vf", "showinfo", "-f", "null", "-",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        self.stack.callback(self.process.kill)
        # What comes before it listens would be lost, the first keyframe too.
        await listens(self.port, self.process)

    async def until(self, size: tuple[int, int]):
        """Waits for a frame of this size."""
        width, height = size
        async for line in self.process.stderr:
            if f" s:{width}x{height} " in line.decode():
                return
        raise AssertionError("ffmpeg ended")


class Layers(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.stack = contextlib.AsyncExitStack()
        self.http = await self.stack.enter_async_context(aiohttp.ClientSession())

    async def asyncTearDown(self):
        await self.stack.aclose()

    async def room(self) -> Room:
        room = Room(await self.stack.enter_async_context(Server()), self.http, self.stack)
        await room.create()
        return room

    async def test_ffmpeg_decodes_each_layer_that_the_old_form_forwards(self):
        room = await self.room()
        publisher = Layered(await room.attach(), self.stack)
        streams = await publisher.publish()
        self.assertTrue(streams[0]["simulcast"], streams)
        decoders = [Decoder(self.stack) for _ in SIZES]
        for decoder in decoders:
            await decoder.start()
        ports = [decoder.port for decoder in decoders]
        forward = {"request": "rtp_forward", "publisher_id": 1, "host": "127.0.0.1", "video_pt": 96, "video_pt_2": 96,
                   "video_pt_3": 96, "video_port": ports[0], "video_port_2": ports[1], "video_port_3": ports[2]}
        told = (await room.manage(forward))["rtp_stream"]
        self.assertEqual([told["video"], told["video_2"], told["video_3"]], ports)
        for decoder, size in zip(decoders, SIZES):
            self.assertEqual(await decoder.done(), size)

    async def test_ffmpeg_decodes_the_best_layer(self):
        room = await self.room()
        await Layered(await room.attach(), self.stack).publish()
        decoder = Sizes(self.stack)
        await decoder.start()
        stream = {"mid": "0", "port": decoder.port, "pt": 96}
        await room.manage({"request": "rtp_forward", "publisher_id": 1, "host": "127.0.0.1", "streams": [stream]})
        await asyncio.wait_for(decoder.until(SIZES[-1]), WAIT)

    async def test_nothing_is_forwarded_after_an_unpublish(self):
        room = await self.room()
        publisher = Member(await room.attach(), self.stack)
        await publisher.publish()
        receivers = []
        for port in [free_pair(), free_pair()]:
            receiver = self.stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            receiver.bind(("127.0.0.1", port))
            receiver.setblocking(False)
            receivers.append((receiver, port))
        forward = {"request": "rtp_forward", "publisher_id": 1, "host": "127.0.0.1", "audio_port": receivers[0][1],
                   "video_port": receivers[1][1]}
        await room.manage(forward)
        loop = asyncio.get_running_loop()
        for receiver, _ in receivers:
            for _ in range(30):
                await asyncio.wait_for(loop.sock_recv(receiver, 2048), WAIT)
        await publisher.handle.message({"request": "unpublish"})
        await publisher.until("hangup")
        for receiver, _ in receivers:
            while waits(receiver):
                pass
            # 20 ms of sound are a packet, 33 ms of picture another.
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(loop.sock_recv(receiver, 2048), 1)
        self.assertEqual((await room.manage({"request": "listforwarders"}))["publishers"], [])

    async def test_layers_of_another_server_can_be_chosen(self):
        here, there = await self.room(), await self.room()
        streams = await Layered(await here.attach(), self.stack).publish()
        added = await there.manage({"request": "add_remote_publisher", "id": 7, "streams": streams})
        await here.manage({"request": "publish_remotely", "publisher_id": 1, "remote_id": "there", "host": "127.0.0.1",
                           "port": added["port"], "rtcp_port": added["rtcp_port"]})
        viewer = Member(await there.attach(), self.stack)
        await viewer.subscribe(7, channel=False)
        for layer in [0, 2, 1]:
            # What the link carries is not the question: a busy machine may well take lower layers meanwhile.
            await viewer.handle.message({"request": "configure", "mid": "0", "substream": layer, "fallback": 5_000_000})
            async with asyncio.timeout(WAIT):
                size = None
                while size != SIZES[layer]:
                    frame = await viewer.tracks["video"].recv()
                    size = (frame.width, frame.height)


def waits(receiver: socket.socket) -> bool:
    """Takes a datagram, if there is one."""
    try:
        return bool(receiver.recv(2048))
    except BlockingIOError:
        return False


if __name__ == "__main__":
    unittest.main()
