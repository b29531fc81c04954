// Ears and voices for tests of audio rooms: each tab talks with a tone of its own, and tells which tones it hears.
import type { BrowserContext, Page } from '@playwright/test';
import { expect } from './fixtures';

/** Tones in Hz, far from each other and from each other's multiples. */
export const TONES = { ann: 440, ben: 1010, cleo: 1730, file: 2630 };

/** How far a tone is above what is heard where there is none, in dB. */
const MARGIN = 25;

/**
 * Gives the pages of a context a microphone with the tone that their address names: `?tone=440`, or with one on the left and one on
 * the right: `?tone=440,1010`.
 */
export async function giveVoices(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const tones = new URLSearchParams(window.location.search).get('tone')?.split(',').map(Number) ?? [];
    if (tones.length === 0 || !navigator.mediaDevices) return;
    navigator.mediaDevices.enumerateDevices = async () => [{ kind: 'audioinput', deviceId: 'tone', label: 'Tone', groupId: '' } as MediaDeviceInfo];
    navigator.mediaDevices.getUserMedia = async (constraints) => {
      (window as any).asked = constraints;
      const audio = new AudioContext();
      const [channels, volume] = [new ChannelMergerNode(audio, { numberOfInputs: tones.length }), new GainNode(audio, { gain: 0.1 })];
      const out = new MediaStreamAudioDestinationNode(audio, { channelCount: tones.length });
      tones.forEach((frequency, channel) => {
        const source = new OscillatorNode(audio, { frequency });
        source.connect(channels, 0, channel);
        source.start();
      });
      channels.connect(volume).connect(out);
      await audio.resume();
      return out.stream;
    };
  });
}

/** What a tab hears: how loud each tone is at the left and the right ear, in dB above the silence between the tones. */
export async function loudness(page: Page): Promise<Record<string, [number, number]>> {
  return page.evaluate(async (tones) => {
    const stream = document.querySelector<HTMLAudioElement>('#sounds audio, body > audio')?.srcObject as MediaStream | null;
    if (!stream) return {};
    type Ear = (tone: number) => number;

    /** By the spectrum of what plays. */
    async function playing(stream: MediaStream): Promise<Ear[]> {
      const ears = ((window as any).ears ??= {}) as { stream?: MediaStream; context?: AudioContext; analysers?: AnalyserNode[] };
      if (ears.stream !== stream) {
        void ears.context?.close();
        const context = new AudioContext();
        await context.resume();
        const splitter = context.createChannelSplitter(2);
        // One channel is heard by both ears.
        const both = new GainNode(context, { channelCount: 2, channelCountMode: 'explicit' });
        context.createMediaStreamSource(stream).connect(both).connect(splitter);
        const analysers = [0, 1].map((channel) => {
          const analyser = new AnalyserNode(context, { fftSize: 8192, smoothingTimeConstant: 0, minDecibels: -120 });
          splitter.connect(analyser, channel);
          return analyser;
        });
        Object.assign(ears, { stream, context, analysers });
        await new Promise((done) => setTimeout(done, 300));
      }
      return ears.analysers!.map((analyser) => {
        const bins = new Float32Array(analyser.frequencyBinCount);
        analyser.getFloatFrequencyData(bins);
        const width = analyser.context.sampleRate / analyser.fftSize;
        return (tone) => {
          const at = Math.round(tone / width);
          return Math.max(-120, ...bins.slice(at - 3, at + 4));
        };
      });
    }

    /** By a short recording: no AudioContext of Firefox's runs where there is no sound device. */
    async function recorded(stream: MediaStream): Promise<Ear[]> {
      const recorder = new MediaRecorder(stream);
      const data = new Promise<Blob>((done) => (recorder.ondataavailable = ({ data }) => done(data)));
      recorder.start();
      await new Promise((done) => setTimeout(done, 600));
      recorder.stop();
      const sound = await new OfflineAudioContext(2, 1, 48_000).decodeAudioData(await (await data).arrayBuffer());
      return [0, Math.min(1, sound.numberOfChannels - 1)].map((channel) => {
        const samples = sound.getChannelData(channel).slice(-9_600);
        return (tone) => {
          const sums = [0, 0] as [number, number];
          samples.forEach((sample, n) => {
            const [phase, window] = [(2 * Math.PI * tone * n) / 48_000, 1 - Math.cos((2 * Math.PI * n) / samples.length)];
            sums[0] += sample * window * Math.cos(phase);
            sums[1] += sample * window * Math.sin(phase);
          });
          return Math.max(-120, 20 * Math.log10((2 * Math.hypot(...sums)) / samples.length));
        };
      });
    }

    const ears = await (navigator.userAgent.includes('Firefox') ? recorded(stream) : playing(stream));
    const heard: Record<string, [number, number]> = {};
    for (const [name, tone] of Object.entries(tones)) {
      heard[name] = ears.map((ear) => ear(tone) - Math.max(-85, ear(3_300))) as [number, number];
    }
    return heard;
  }, TONES);
}

/** Which tones a tab hears with either ear. */
export async function heard(page: Page): Promise<string[]> {
  const all = await loudness(page);
  return Object.keys(all).filter((name) => Math.max(...(all[name] ?? [])) > MARGIN).sort();
}

/** Waits until a tab hears these and no others. */
export async function hears(page: Page, ...names: string[]): Promise<void> {
  await expect.poll(() => heard(page), { message: `heard is ${names.join(' and ') || 'nobody'}` }).toEqual([...names].sort());
}
