// Files of sound: one with a tone to play, and which tones are in one that is being recorded.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { TONES } from './audio';
import { expect } from './fixtures';

/** Writes a WAV file of a minute of a tone, the same in each channel, of 16 bits. */
export function writeTone(path: string, frequency: number, rate = 8_000, channels = 1): void {
  const data = new Int16Array(rate * 60 * channels);
  for (let n = 0; n < data.length; n += 1) data[n] = Math.round(6_000 * Math.sin((2 * Math.PI * frequency * Math.floor(n / channels)) / rate));
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + data.byteLength, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2 * channels, 28);
  head.writeUInt16LE(2 * channels, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(data.byteLength, 40);
  writeFileSync(path, Buffer.concat([head, new Uint8Array(data.buffer)]));
}

/**
 * Which tones are in the last half second of a WAV file, which may still be written. Some programs write its head in the end: until
 * then the sound is mono, at the given rate.
 */
export function tonesIn(path: string, assumed = 8_000): string[] {
  if (!existsSync(path)) return [];
  const file = readFileSync(path);
  if (file.length < 44) return [];
  const hasHead = file.toString('latin1', 0, 4) === 'RIFF';
  const begin = hasHead ? file.indexOf('data', 36) : 36;
  const [channels, rate] = hasHead ? [file.readUInt16LE(22), file.readUInt32LE(24)] : [1, assumed];
  const frames = Math.floor((file.length - begin - 8) / (2 * channels));
  const count = Math.floor(rate / 2);
  if (frames < count) return [];
  const samples = Float64Array.from({ length: count }, (_, n) => file.readInt16LE(begin + 8 + (frames - count + n) * 2 * channels) / 32_768);
  const quiet = Math.max(-70, level(samples, rate, 3_300));
  return Object.entries(TONES)
    .filter(([, tone]) => level(samples, rate, tone) - quiet > 20)
    .map(([name]) => name)
    .sort();
}

/** How loud a frequency is, in dB of full scale. */
function level(samples: Float64Array, rate: number, frequency: number): number {
  let [real, imaginary] = [0, 0];
  samples.forEach((sample, n) => {
    const [phase, window] = [(2 * Math.PI * frequency * n) / rate, 1 - Math.cos((2 * Math.PI * n) / samples.length)];
    real += sample * window * Math.cos(phase);
    imaginary += sample * window * Math.sin(phase);
  });
  return Math.max(-120, 20 * Math.log10((2 * Math.hypot(real, imaginary)) / samples.length));
}

/** Waits until a phone hears these tones and no others. */
export async function phoneHears(phone: { heard(): string[] }, ...names: (keyof typeof TONES)[]): Promise<void> {
  await expect.poll(() => phone.heard(), { message: `the phone hears ${names.join(' and ') || 'nobody'}` }).toEqual([...names].sort());
}
