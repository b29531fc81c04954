"""A voice agent of LiveKit's framework for Python, unmodified: it registers, gets a job, joins, hears and speaks."""

import asyncio
import os
import pathlib
import sys
import unittest

from livekit import api, rtc

import voice_agent
from livekit_room import KEY, SECRET, Guest, LiveKitServer, token, until


class VoiceAgent(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await self.enterAsyncContext(LiveKitServer())
        self.api = await self.enterAsyncContext(api.LiveKitAPI(self.server.api_url, KEY, SECRET))
        script = pathlib.Path(voice_agent.__file__)
        environment = {"LIVEKIT_URL": self.server.url, "LIVEKIT_API_KEY": KEY, "LIVEKIT_API_SECRET": SECRET}
        self.agent = await asyncio.create_subprocess_exec(
            sys.executable, str(script), env=os.environ | environment, stderr=asyncio.subprocess.STDOUT, stdout=asyncio.subprocess.PIPE,
        )
        self.addAsyncCleanup(self.end_agent)
        self.log = ""
        reading = asyncio.create_task(self.read_log())
        self.addCleanup(reading.cancel)
        # The first start compiles the framework.
        await self.says("registered worker", 90)

    async def read_log(self):
        async for line in self.agent.stdout:
            self.log += line.decode(errors="replace")

    async def says(self, text: str, timeout: float = 30):
        try:
            await until(text, lambda: text in self.log, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.log[-4000:]}") from None

    async def end_agent(self):
        if self.agent.returncode is None:
            self.agent.kill()
        await self.agent.wait()

    async def test_it_answers_what_it_hears(self):
        guest = Guest()
        await guest.room.connect(self.server.url, token("al", "voice"))
        self.addAsyncCleanup(guest.leave)
        await guest.play("microphone", 440)
        dispatch = await self.api.agent_dispatch.create_dispatch(api.CreateAgentDispatchRequest(room="voice", agent_name=voice_agent.NAME))
        agent = await until("the agent joins", lambda: next(iter(guest.room.remote_participants.values()), None))
        self.assertEqual(agent.kind, rtc.ParticipantKind.PARTICIPANT_KIND_AGENT)
        publication = await until("it speaks", lambda: next(iter(agent.track_publications.values()), None))
        try:
            await guest.hears(publication.name, voice_agent.ANSWER)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.log[-4000:]}") from None
        # It would speak for half a minute.
        await self.api.agent_dispatch.delete_dispatch(dispatch.id, "voice")
        await until("the agent leaves", lambda: not guest.room.remote_participants, 15)


if __name__ == "__main__":
    unittest.main()
