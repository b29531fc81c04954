// The figures of each stream of a PeerConnection, by mid, from its statistics.

type Stat = Record<string, any>;

export interface StreamFigures {
  codec?: string;
  size?: string;
  rate?: string;
  /** bit/s */
  bitrate?: number;
  /** Share of packets lost since the last reading, 0 to 1. */
  loss?: number;
  /** How loud it is, 0 to 1. */
  level: number;
}

/** One reading of an m-line. */
interface Counters {
  /** Milliseconds. */
  at: number;
  bytes: number;
  received: number;
  lost: number;
  energy: number;
}

/** Reads the statistics of a PeerConnection; rates are between one reading of it and the next. */
export class Rates {
  private connection?: RTCPeerConnection;
  private before = new Map<string, Counters>();

  constructor(private readonly direction: 'inbound' | 'outbound') {}

  async read(connection: RTCPeerConnection | null | undefined): Promise<Map<string, StreamFigures>> {
    if (!connection) return new Map();
    const stats = new Map((await connection.getStats()) as unknown as Iterable<[string, Stat]>);
    if (connection !== this.connection) this.before = new Map();
    this.connection = connection;
    const ofType = (type: string) => [...stats.values()].filter((stat) => stat['type'] === type);
    const streams = ofType(`${this.direction}-rtp`).filter((stat) => stat['mid'] !== undefined);
    const reports = ofType('remote-inbound-rtp');
    const now = new Map<string, Counters>();
    const figures = new Map<string, StreamFigures>();
    for (const mid of new Set(streams.map((stat) => String(stat['mid'])))) {
      // Simulcast has several streams on one m-line: their rates add up, the largest is what is seen.
      const all = streams.filter((stat) => stat['mid'] === mid);
      const best = all.reduce((one, other) => ((other['frameWidth'] ?? 0) > (one['frameWidth'] ?? 0) ? other : one));
      const sum = (field: string) => all.reduce((total, stat) => total + ((stat[field] as number | undefined) ?? 0), 0);
      const reading = {
        at: best['timestamp'] as number,
        bytes: sum(this.direction === 'inbound' ? 'bytesReceived' : 'bytesSent'),
        received: sum('packetsReceived'),
        lost: sum('packetsLost'),
        energy: (best['totalAudioEnergy'] as number | undefined) ?? 0,
      };
      now.set(mid, reading);
      const rates = since(this.before.get(mid), reading);
      // Only the other side knows which sent packets were lost.
      const told = reports.filter((report) => all.some((stat) => stat['id'] === report['localId']));
      figures.set(mid, {
        codec: stats.get(best['codecId'] ?? '')?.['mimeType']?.split('/')[1],
        size: best['frameWidth'] ? `${best['frameWidth']}×${best['frameHeight']}` : undefined,
        rate: best['framesPerSecond'] === undefined ? undefined : `${Math.round(best['framesPerSecond'])}/s`,
        ...rates,
        loss: this.direction === 'inbound' ? rates.loss : largest(told.map((report) => report['fractionLost'])),
      });
    }
    this.before = now;
    return figures;
  }
}

function since(before: Counters | undefined, now: Counters): { bitrate?: number; loss?: number; level: number } {
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  if (!before || seconds <= 0) return { level: 0 };
  // A line of the connection can get another stream, which counts from zero; late packets turn losses into receptions.
  const grown = (field: keyof Counters) => Math.max(0, now[field] - before[field]);
  const [received, lost] = [grown('received'), grown('lost')];
  return {
    bitrate: (grown('bytes') * 8) / seconds,
    loss: received + lost > 0 ? lost / (received + lost) : undefined,
    // The energy is the square of the level over time.
    level: Math.sqrt(grown('energy') / seconds),
  };
}

function largest(shares: (number | undefined)[]): number | undefined {
  const known = shares.filter((share) => share !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}
