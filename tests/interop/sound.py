"""Voices with a tone each, and ears that tell them apart."""

import array
import asyncio
import contextlib
import fractions
import math
import time
from collections.abc import AsyncIterator

import av
from aiortc.mediastreams import AudioStreamTrack

WAIT = 40

#: Tones in Hz, far from each other and from each other's multiples, all of which a telephone passes.
TONES = {"ann": 440, "ben": 1010, "cleo": 1730, "file": 2630}

#: How loud a voice is, as the amplitude of a sine; how loud one is at least that is heard, and at most that is not.
VOICE, LOUD, SILENT = 0.2, 0.03, 0.006


class Voice(AudioStreamTrack):
    """Talks with the tone of this name."""

    RATE = 8_000

    def __init__(self, name: str):
        super().__init__()
        self._step = math.tau * TONES[name] / self.RATE
        self._at = 0

    async def recv(self) -> av.AudioFrame:
        frame = await super().recv()
        count, start = frame.samples, self._at
        samples = array.array("h", (int(VOICE * 32_767 * math.sin(self._step * n)) for n in range(start, start + count)))
        self._at += count
        sound = av.AudioFrame(format="s16", layout="mono", samples=count)
        sound.planes[0].update(samples.tobytes())
        sound.pts, sound.sample_rate, sound.time_base = frame.pts, self.RATE, fractions.Fraction(1, self.RATE)
        return sound


class Ear:
    """Listens to samples of 16 bits, and keeps the last 200 ms of each channel."""

    def __init__(self, who: str, rate: int = 48_000, channels: int = 1):
        self.who, self.rate, self.channels = who, rate, channels
        # The program that hears, if it is one.
        self.process: asyncio.subprocess.Process | None = None
        self._samples = array.array("h")

    def take(self, data: bytes):
        self._samples.frombytes(data)
        self._samples = self._samples[-self.rate // 5 * self.channels:]

    def loudness(self, name: str, channel: int = 0) -> float:
        """How loud the tone of this name is in a channel, as the amplitude of a sine."""
        samples = self._samples[channel::self.channels]
        if len(samples) < self.rate // 5:
            return 0.0
        # Goertzel's algorithm. The window holds whole periods of all tones.
        factor = 2 * math.cos(math.tau * TONES[name] / self.rate)
        last = before = 0.0
        for sample in samples:
            last, before = sample + factor * last - before, last
        power = last * last + before * before - factor * last * before
        return 2 * math.sqrt(max(0.0, power)) / len(samples) / 32_768

    def heard(self, channel: int = 0) -> dict[str, float]:
        return {name: self.loudness(name, channel) for name in TONES}

    async def hears(self, *names: str, channel: int = 0):
        """Waits until exactly these are heard."""
        deadline = time.monotonic() + WAIT
        while True:
            heard = self.heard(channel)
            if all(level > LOUD if name in names else level < SILENT for name, level in heard.items()):
                if names or self._samples:
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.who} should hear {names or 'nobody'}, but hears {heard}")
            await asyncio.sleep(0.1)

    async def hears_whole(self, name: str):
        """Waits until this voice is about as loud as it talks: when it begins, a part of the window is still silent."""
        deadline = time.monotonic() + WAIT
        while abs((level := self.loudness(name)) - VOICE) > VOICE / 2:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.who} hears {name} with {level}, who talks with {VOICE}")
            await asyncio.sleep(0.1)

    async def listen(self, track):
        """Listens to what aiortc decodes, which has two channels."""
        with contextlib.suppress(Exception):
            while True:
                frame = await track.recv()
                left = array.array("h", bytes(frame.planes[0])[:4 * frame.samples])[::2]
                self.take(left.tobytes())

    async def read(self, pipe: asyncio.StreamReader):
        """Listens to what a program writes."""
        size = 2 * self.channels * self.rate // 50
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                self.take(await pipe.readexactly(size))


@contextlib.asynccontextmanager
async def program(who: str, *command: str, rate: int = 16_000, channels: int = 1) -> AsyncIterator[Ear]:
    """A program that writes what it hears as raw samples, for as long as the block lasts."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE)
    ear = Ear(who, rate, channels)
    ear.process = process
    listening = asyncio.create_task(ear.read(process.stdout))
    try:
        yield ear
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening
