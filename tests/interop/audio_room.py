"""Tests of a server with an audio room, and people in it."""

import asyncio

from aiortc import RTCPeerConnection, RTCSessionDescription

from janus import Handle
from sound import WAIT, Ear, Voice
from whip import WhipTestCase

PACKAGE = "janus.plugin.audiobridge"
ROOM = 1234


class Member:
    """Somebody in the room by aiortc, who talks with a tone."""

    def __init__(self, handle: Handle, name: str):
        self.handle, self.name = handle, name
        self.connection = RTCPeerConnection()
        self.ear = Ear(name)
        self.connection.on("track", lambda track: asyncio.ensure_future(self.ear.listen(track)))

    async def join(self, **members):
        self.connection.addTrack(Voice(self.name))
        await self.connection.setLocalDescription(await self.connection.createOffer())
        offer = self.connection.localDescription
        body = {"request": "join", "room": ROOM, "display": self.name} | members
        event = await self.handle.message(body, {"type": offer.type, "sdp": offer.sdp})
        joined = event["plugindata"]["data"]
        assert joined["audiobridge"] == "joined", joined
        self.id = joined["id"]
        await self.connection.setRemoteDescription(RTCSessionDescription(**event["jsep"]))


class AudioRoomTestCase(WhipTestCase):
    """Each test has a server of its own with a room that has these options."""

    options: dict = {}

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.admin = await self.attach()
        await self.manage("create", sampling_rate=16_000, **self.options)

    async def attach(self) -> Handle:
        handle = await Handle.attach(self.http, self.server.http, PACKAGE)
        self.stack.push_async_callback(handle.close)
        return handle

    async def manage(self, request: str, **members) -> dict:
        """Sends a request that is answered at once."""
        data = await self.admin.manage({"request": request, "room": ROOM} | members)
        self.assertNotIn("error_code", data)
        return data

    async def member(self, name: str, **members) -> Member:
        """Somebody joins and talks."""
        member = Member(await self.attach(), name)
        self.stack.push_async_callback(member.connection.close)
        await member.join(**members)
        return member

    async def people(self) -> dict[str, dict]:
        """Who is in the room, by their names."""
        listed = await self.manage("listparticipants")
        return {one.get("display", ""): one for one in listed["participants"]}

    async def until(self, condition):
        """Waits until `condition()` gives something true; gives that."""
        async with asyncio.timeout(WAIT):
            while not (result := await condition()):
                await asyncio.sleep(0.1)
        return result
