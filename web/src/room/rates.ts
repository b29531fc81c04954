// The figures of each stream of a PeerConnection, by mid, from its statistics.

type Stat = Record<string, any>;

export interface StreamFigures {
  codec?: string;
  size?: string;
  rate?: string;
  bitrate?: string;
  /** How loud it is, 0 to 1. */
  level: number;
}

/** Reads statistics; rates are between one reading and the next. */
export class Rates {
  private before = new Map<string, { at: number; bytes: number; energy: number }>();

  read(report: Iterable<[string, Stat]>, direction: 'inbound' | 'outbound'): Map<string, StreamFigures> {
    const stats = new Map(report);
    const streams = [...stats.values()].filter((stat) => stat['type'] === `${direction}-rtp` && stat['mid'] !== undefined);
    const now = new Map<string, { at: number; bytes: number; energy: number }>();
    const figures = new Map<string, StreamFigures>();
    for (const mid of new Set(streams.map((stat) => String(stat['mid'])))) {
      // Simulcast has several streams on one m-line: their rates add up, the largest is what is seen.
      const all = streams.filter((stat) => stat['mid'] === mid);
      const best = all.reduce((one, other) => ((other['frameWidth'] ?? 0) > (one['frameWidth'] ?? 0) ? other : one));
      const reading = {
        at: best['timestamp'] as number,
        bytes: all.reduce((sum, stat) => sum + (stat['bytesReceived'] ?? stat['bytesSent'] ?? 0), 0),
        energy: (best['totalAudioEnergy'] as number | undefined) ?? 0,
      };
      now.set(mid, reading);
      figures.set(mid, {
        codec: stats.get(best['codecId'] ?? '')?.['mimeType']?.split('/')[1],
        size: best['frameWidth'] ? `${best['frameWidth']}×${best['frameHeight']}` : undefined,
        rate: best['framesPerSecond'] === undefined ? undefined : `${Math.round(best['framesPerSecond'])}/s`,
        ...this.since(mid, reading),
      });
    }
    this.before = now;
    return figures;
  }

  private since(mid: string, now: { at: number; bytes: number; energy: number }): { bitrate?: string; level: number } {
    const before = this.before.get(mid);
    const seconds = before ? (now.at - before.at) / 1000 : 0;
    if (!before || seconds <= 0) return { level: 0 };
    const bits = Math.max(0, ((now.bytes - before.bytes) * 8) / seconds);
    return {
      bitrate: bits >= 1e6 ? `${(bits / 1e6).toFixed(2)} Mbit/s` : `${Math.round(bits / 1e3)} kbit/s`,
      // The energy is the square of the level over time.
      level: Math.sqrt(Math.max(0, (now.energy - before.energy) / seconds)),
    };
  }
}
