"""LiveKit's realtime SDK for Python, unmodified, which is that of Rust with Chromium's WebRTC inside."""

import asyncio
import tempfile
import unittest

from livekit import rtc

from livekit_room import Guest, LiveKitServer, token, until

# With one PeerConnection, and with two.
MODES = {"one": True, "two": False}


class RealtimeSdk(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await self.enterAsyncContext(LiveKitServer())

    async def enter(self, identity: str, room: str, *, options: rtc.RoomOptions | None = None, **grants) -> Guest:
        guest = Guest()
        await guest.room.connect(self.server.url, token(identity, room, **grants), options or rtc.RoomOptions())
        self.addAsyncCleanup(guest.leave)
        return guest

    async def both(self, mode: str, **grants) -> tuple[Guest, Guest]:
        """Two participants in a room."""
        options = rtc.RoomOptions(single_peer_connection=MODES[mode])
        al, bo = [await self.enter(identity, f"py {mode}", options=options, **grants) for identity in ("al", "bo")]
        await al.notices("bo enters")
        return al, bo

    async def test_sound_and_pictures(self):
        for mode in MODES:
            with self.subTest(mode):
                al, bo = await self.both(mode)
                microphone = await al.play("microphone", 440)
                await al.show("camera", 320, 240)
                await bo.play("voice", 1_000)
                await bo.hears("microphone", 440)
                await bo.sees("camera", 320, 240)
                await al.hears("voice", 1_000)
                await bo.notices("al speaks")
                microphone.track.mute()
                await bo.notices("microphone of al is muted")
                microphone.track.unmute()
                await bo.notices("microphone of al is unmuted")
                await al.room.local_participant.unpublish_track(microphone.sid)
                await bo.notices("microphone of al ends")
                await al.play("other microphone", 600)
                await bo.hears("other microphone", 600)
                await al.leave()
                await bo.notices("al leaves")

    async def test_layers(self):
        # This SDK writes its rids the highest layer first, browsers the lowest.
        for mode in MODES:
            with self.subTest(mode):
                al, bo = await self.both(mode)
                camera = await al.show("camera", 1280, 720, simulcast=True)
                await bo.notices("camera of al")
                seen = bo.room.remote_participants["al"].track_publications[camera.sid]
                await bo.sees("camera", 1280, 720)
                for quality, size in (("LOW", (320, 180)), ("MEDIUM", (640, 360)), ("HIGH", (1280, 720))):
                    seen.set_video_quality(rtc.VideoQuality.Value(f"VIDEO_QUALITY_{quality}"))
                    await bo.sees("camera", *size)
                await al.leave()
                await bo.leave()

    async def test_data(self):
        for mode in MODES:
            with self.subTest(mode):
                al, bo = await self.both(mode)
                await self.exchange(al, bo)

    async def exchange(self, al: Guest, bo: Guest):
        """Sends data of each kind."""
        got: dict[str, object] = {}

        async def read_text(reader, _identity):
            got["text"] = await reader.read_all()

        async def read_bytes(reader, identity):
            got["bytes"] = (identity, reader.info.name, b"".join([chunk async for chunk in reader]))

        def run(read):
            return lambda reader, identity: self.run_along(read(reader, identity))

        bo.room.register_text_stream_handler("chat", run(read_text))
        bo.room.register_byte_stream_handler("files", run(read_bytes))

        async def greet(call):
            return f"hello {call.caller_identity}, {call.payload}"

        bo.room.local_participant.register_rpc_method("greet", greet)
        me = al.room.local_participant
        await me.publish_data("to all", topic="t")
        await me.publish_data("to bo", destination_identities=["bo"])
        await me.publish_data("to nobody", destination_identities=["nobody"])
        await me.publish_dtmf(code=11, digit="#")
        for event in ("data to all t of al", "data to bo  of al", "key # of al"):
            await bo.notices(event)
        self.assertNotIn("data to nobody  of al", bo.events)
        await me.send_text("x" * 100_000, topic="chat")
        self.assertEqual(await until("a text", lambda: got.get("text")), "x" * 100_000)
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(bytes(range(256)) * 500)
            file.flush()
            await me.send_file(file.name, topic="files")
            identity, _, content = await until("a file", lambda: got.get("bytes"))
            self.assertEqual((identity, len(content), content[:4]), ("al", 128_000, b"\0\1\2\3"))
        answer = await me.perform_rpc(destination_identity="bo", method="greet", payload="you")
        self.assertEqual(answer, "hello al, you")
        with self.assertRaises(rtc.RpcError) as raised:
            await me.perform_rpc(destination_identity="bo", method="none", payload="")
        self.assertEqual(raised.exception.code, rtc.RpcError.ErrorCode.UNSUPPORTED_METHOD)

    def run_along(self, coroutine):
        """Runs something beside the test, until the test ends at most."""
        task = asyncio.create_task(coroutine)
        self.addCleanup(task.cancel)

    async def test_names_and_attributes(self):
        al, bo = await self.both("two", can_update_own_metadata=True)
        await al.room.local_participant.set_name("Alice")
        await bo.notices("al is Alice")
        await al.room.local_participant.set_attributes({"mood": "good"})
        await bo.notices("{'mood': 'good'} of al")

    async def test_reconnects(self):
        kinds = rtc.SimulateScenarioKind
        for mode in MODES:
            al, bo = await self.both(mode)
            await al.play("microphone", 440)
            await bo.play("voice", 1_000)
            await bo.hears("microphone", 440)
            await al.hears("voice", 1_000)
            for kind in (kinds.SIMULATE_SIGNAL_RECONNECT, kinds.SIMULATE_MIGRATION, kinds.SIMULATE_NODE_FAILURE, kinds.SIMULATE_FULL_RECONNECT):
                with self.subTest(f"{mode}: {kinds.Name(kind)}"):
                    al.events.clear()
                    await al.room.simulate_scenario(kind)
                    await al.notices("reconnected")
                    bo.tones.clear()
                    al.tones.clear()
                    await bo.hears("microphone", 440)
                    await al.hears("voice", 1_000)
                    await al.room.local_participant.publish_data(kinds.Name(kind))
                    await bo.notices(f"data {kinds.Name(kind)}  of al")
            await al.leave()
            await bo.leave()

    async def test_end_to_end_encryption(self):
        def encrypted(key: bytes) -> rtc.RoomOptions:
            provider = rtc.KeyProviderOptions(shared_key=key)
            return rtc.RoomOptions(encryption=rtc.E2EEOptions(key_provider_options=provider))

        keys = {"al": b"one", "bo": b"one", "cy": b"other"}
        al, bo, cy = [await self.enter(name, "secret", options=encrypted(key)) for name, key in keys.items()]
        await al.play("microphone", 440)
        await al.show("camera", 320, 240)
        await bo.hears("microphone", 440)
        await bo.sees("camera", 320, 240)
        await cy.notices("camera of al")
        await until("cy plays the microphone", lambda: cy.frames.get("microphone", 0) > 20)
        self.assertLess(cy.tones["microphone"], 400)
        self.assertNotIn("camera", cy.pictures)
        # Messages are encrypted as well.
        await al.room.local_participant.publish_data("secret")
        await bo.notices("data secret  of al")
        self.assertNotIn("data secret  of al", cy.events)

    async def test_a_wrong_token_is_refused(self):
        room = rtc.Room()
        with self.assertRaises(rtc.ConnectError) as raised:
            await room.connect(self.server.url, "wrong")
        self.assertIn("401", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
