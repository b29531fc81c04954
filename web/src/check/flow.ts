// Counts the traffic of a connection over some seconds, by the browser's statistics.
import type { Connection } from './way';

/** For how long media is watched, in ms. */
const TIME = 5_000;

export interface Flow {
  /** Packets. */
  sent: number;
  received: number;
  /** Frames of video that came back and were decoded. */
  frames: number;
  /** Shares, 0 to 1. The one to the server is known if it reports. */
  lostThere?: number;
  lostHere: number;
  /** In ms. */
  roundTrip?: number;
  jitter?: number;
}

/** Watches a connection. */
export async function watch({ peer }: Connection, signal: AbortSignal): Promise<Flow> {
  await pause(TIME, signal);
  const stats = [...(await peer.getStats()).values()];
  const of = (type: string) => stats.filter((it) => it.type === type);
  const sum = (type: string, field: string) => of(type).reduce((all, it) => all + (Number(it[field]) || 0), 0);
  const least = (values: unknown[]) => {
    const known = values.filter((value): value is number => typeof value === 'number');
    return known.length > 0 ? Math.min(...known) : undefined;
  };
  const pair = of('candidate-pair').find((it) => it.nominated && it.state === 'succeeded');
  const [received, lost] = [sum('inbound-rtp', 'packetsReceived'), Math.max(0, sum('inbound-rtp', 'packetsLost'))];
  const sent = sum('outbound-rtp', 'packetsSent');
  const reported = of('remote-inbound-rtp').length > 0;
  const roundTrip = least([...of('remote-inbound-rtp').map((it) => it.roundTripTime), pair?.currentRoundTripTime]);
  const jitter = least(of('inbound-rtp').map((it) => it.jitter));
  return {
    sent,
    received,
    frames: sum('inbound-rtp', 'framesDecoded'),
    lostHere: lost / Math.max(1, lost + received),
    ...(reported && { lostThere: Math.max(0, sum('remote-inbound-rtp', 'packetsLost')) / Math.max(1, sent) }),
    ...(roundTrip !== undefined && { roundTrip: roundTrip * 1_000 }),
    ...(jitter !== undefined && { jitter: jitter * 1_000 }),
  };
}

function pause(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, reject) => {
    const timer = setTimeout(done, time);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new Error('the server went away'));
    });
    if (signal.aborted) reject(new Error('the server went away'));
  });
}
