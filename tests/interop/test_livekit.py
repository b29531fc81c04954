"""LiveKit's server SDK for Python, unmodified: tokens, rooms, errors."""

import asyncio
import unittest

from livekit import api

from livekit_room import KEY, SECRET, LiveKitServer, token


class ServerSdk(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await self.enterAsyncContext(LiveKitServer())
        self.url = self.server.api_url
        self.api = await self.enterAsyncContext(api.LiveKitAPI(self.url, KEY, SECRET))

    async def test_rooms(self):
        made = await self.api.room.create_room(api.CreateRoomRequest(name="py", empty_timeout=9, metadata="one"))
        self.assertTrue(made.sid.startswith("RM_"))
        self.assertEqual(made.empty_timeout, 9)
        listed = await self.api.room.list_rooms(api.ListRoomsRequest(names=["py"]))
        self.assertEqual([room.sid for room in listed.rooms], [made.sid])
        changed = await self.api.room.update_room_metadata(api.UpdateRoomMetadataRequest(room="py", metadata="two"))
        self.assertEqual(changed.metadata, "two")
        people = await self.api.room.list_participants(api.ListParticipantsRequest(room="py"))
        self.assertEqual(len(people.participants), 0)
        await self.api.room.send_data(api.SendDataRequest(room="py", data=b"hello"))
        await self.api.room.delete_room(api.DeleteRoomRequest(room="py"))
        with self.assertRaises(api.TwirpError) as raised:
            await self.api.room.delete_room(api.DeleteRoomRequest(room="py"))
        self.assertEqual(raised.exception.code, api.TwirpErrorCode.NOT_FOUND)

    async def test_methods_that_are_not_there(self):
        listed = await self.api.egress.list_egress(api.ListEgressRequest())
        self.assertEqual(len(listed.items), 0)
        with self.assertRaises(api.TwirpError) as raised:
            await self.api.egress.start_web_egress(api.WebEgressRequest(url="https://example.org"))
        self.assertEqual(raised.exception.code, api.TwirpErrorCode.UNIMPLEMENTED)

    async def test_a_token_opens_the_door(self):
        process = await asyncio.create_subprocess_exec(
            "curl", "-s", f"{self.url}/rtc/validate?access_token={token('al', 'py')}", stdout=asyncio.subprocess.PIPE
        )
        text, _ = await process.communicate()
        self.assertEqual(text, b"success")


if __name__ == "__main__":
    unittest.main()
