"""A voice agent of LiveKit's framework, without models: it takes a tone for speech, and answers with another tone.

    LIVEKIT_URL=ws://… LIVEKIT_API_KEY=… LIVEKIT_API_SECRET=… python voice_agent.py
"""

import asyncio
import logging
import math
import uuid

from livekit import rtc
from livekit.agents import APIConnectOptions, Agent, AgentServer, AgentSession, JobContext, JobExecutorType, stt, tts
from livekit.agents.language import LanguageCode

# The name by which it is dispatched.
NAME = "tone"

# The frequency of the answer, in Hz, and its length in seconds.
ANSWER, SECONDS = 880, 30

RATE = 24_000


class ToneListener(stt.STT):
    """Recognizes that there is sound, once."""

    def __init__(self):
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=False))

    async def _recognize_impl(self, buffer, *, language, conn_options):
        raise NotImplementedError("it listens to streams only")

    def stream(self, *, language=None, conn_options=APIConnectOptions()):
        return ToneStream(stt=self, conn_options=conn_options, sample_rate=RATE)


class ToneStream(stt.RecognizeStream):
    async def _run(self):
        loud = 0
        async for frame in self._input_ch:
            if not isinstance(frame, rtc.AudioFrame):
                continue
            loud += max(frame.data, default=0) > 3_000
            if loud == 20:
                said = stt.SpeechData(language=LanguageCode("en"), text="a tone")
                self._event_ch.send_nowait(stt.SpeechEvent(type=stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[said]))


class ToneSpeaker(tts.TTS):
    """Says everything as one tone."""

    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)

    def synthesize(self, text, *, conn_options=APIConnectOptions()):
        return ToneSynthesis(tts=self, input_text=text, conn_options=conn_options)


class ToneSynthesis(tts.ChunkedStream):
    async def _run(self, output_emitter):
        output_emitter.initialize(request_id=uuid.uuid4().hex, sample_rate=RATE, num_channels=1, mime_type="audio/pcm")
        samples = (int(12_000 * math.sin(2 * math.pi * ANSWER * at / RATE)) for at in range(RATE * SECONDS))
        output_emitter.push(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))
        output_emitter.flush()


async def answer(context: JobContext):
    """Joins the room of a job. Answers each tone."""
    session = AgentSession(stt=ToneListener(), tts=ToneSpeaker(), vad=None, turn_detection="stt")
    session.on("user_input_transcribed", lambda event: event.is_final and session.say(f"I hear {event.transcript}", allow_interruptions=False))
    await session.start(agent=Agent(instructions=""), room=context.room)
    await context.connect()


async def main():
    server = AgentServer(job_executor_type=JobExecutorType.THREAD, load_fnc=lambda: 0.0, num_idle_processes=0, host="127.0.0.1", port=0)
    server.rtc_session(answer, agent_name=NAME)
    await server.run(devmode=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
