// Tones of a phone: ringing, ringback and keys.

/** The two frequencies of each key, in Hz. */
const KEYS: Record<string, number[]> = Object.fromEntries(
  ['123A', '456B', '789C', '*0#D'].flatMap((row, line) =>
    [...row].map((key, column) => [key, [[697, 770, 852, 941][line] ?? 0, [1209, 1336, 1477, 1633][column] ?? 0]]),
  ),
);

/** How long it sounds and how long it pauses, in seconds. */
const RHYTHM = { ring: [1, 2], away: [1, 4] } as const;

export class Tones {
  private context: AudioContext | null = null;
  private playing: 'ring' | 'away' | null = null;
  private timer = 0;
  private volume: GainNode | null = null;

  /** Rings until stopped: `ring` for an incoming call, `away` as ringback. */
  set(what: 'ring' | 'away' | null): void {
    if (this.playing === what) return;
    this.playing = what;
    window.clearInterval(this.timer);
    this.volume?.disconnect();
    this.volume = null;
    if (!what) return void navigator.vibrate?.(0);
    const [on, off] = RHYTHM[what];
    const once = () => {
      this.volume = this.sound(what === 'ring' ? [587, 784] : [425], on, what === 'ring' ? 0.15 : 0.05);
      if (what === 'ring') navigator.vibrate?.([400, 200, 400]);
    };
    once();
    this.timer = window.setInterval(once, (on + off) * 1000);
  }

  key(key: string): void {
    const frequencies = KEYS[key];
    if (frequencies) this.sound(frequencies, 0.12, 0.05);
  }

  private sound(frequencies: number[], seconds: number, loudness: number): GainNode {
    const context = (this.context ??= new AudioContext());
    void context.resume();
    const volume = new GainNode(context, { gain: loudness });
    volume.connect(context.destination);
    const end = context.currentTime + seconds;
    for (const frequency of frequencies) {
      const source = new OscillatorNode(context, { frequency });
      source.connect(volume);
      source.start();
      source.stop(end);
      source.addEventListener('ended', () => volume.disconnect());
    }
    return volume;
  }
}
