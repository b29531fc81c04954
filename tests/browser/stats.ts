// Looks into the PeerConnections of a page by getStats, and waits for conditions on what they say.
import { expect, test, type Page } from '@playwright/test';

export type Stat = Record<string, any>;

/** Runs in the page before its scripts: keeps every PeerConnection that is made. */
export function recordPeerConnections(): void {
  const made: RTCPeerConnection[] = [];
  (window as any).peerConnections = made;
  const Original = window.RTCPeerConnection;
  window.RTCPeerConnection = new Proxy(Original, {
    construct(target, args, newTarget) {
      const connection = Reflect.construct(target, args, newTarget) as RTCPeerConnection;
      made.push(connection);
      return connection;
    },
  });
}

/** All statistics of the newest PeerConnection of the page. */
export async function stats(page: Page): Promise<Stat[]> {
  return page.evaluate(async () => {
    const connection = ((window as any).peerConnections as RTCPeerConnection[]).at(-1);
    return connection ? [...(await connection.getStats()).values()] : [];
  });
}

/** Statistics of one type, and of one kind where given. */
export async function statsOf(page: Page, type: string, kind?: 'audio' | 'video'): Promise<Stat[]> {
  return (await stats(page)).filter((stat) => stat.type === type && (!kind || stat.kind === kind));
}

export async function sum(page: Page, type: string, kind: 'audio' | 'video', field: string): Promise<number> {
  return (await statsOf(page, type, kind)).reduce((total, stat) => total + (stat[field] ?? 0), 0);
}

/** Waits until a counter has grown by `by` over what it is now. */
export async function grows(page: Page, type: string, kind: 'audio' | 'video', field: string, by: number): Promise<void> {
  const before = await sum(page, type, kind, field);
  await expect.poll(() => sum(page, type, kind, field), { message: `${kind} ${field} grows by ${by}` }).toBeGreaterThanOrEqual(before + by);
}

/** How much a counter grows in a second, measured over one. */
export async function rate(page: Page, type: string, kind: 'audio' | 'video', field: string): Promise<number> {
  const read = async () => ({ at: performance.now(), value: await sum(page, type, kind, field) });
  const before = await read();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 1000)));
  const after = await read();
  return ((after.value - before.value) * 1000) / (after.at - before.at);
}

/** Width of the received picture. */
export async function receivedWidth(page: Page): Promise<number> {
  return Math.max(0, ...(await statsOf(page, 'inbound-rtp', 'video')).map((stat) => stat.frameWidth ?? 0));
}

/** The codec in use in a direction, as in `VP8`. */
export async function codec(page: Page, type: 'inbound-rtp' | 'outbound-rtp', kind: 'audio' | 'video'): Promise<string | undefined> {
  const all = await stats(page);
  const stream = all.find((stat) => stat.type === type && stat.kind === kind && stat.codecId);
  return all.find((stat) => stat.id === stream?.codecId)?.mimeType?.split('/')[1];
}

/** Asserts that sound and picture arrive and are decoded, and prints how they are protected. */
export async function mediaFlows(page: Page, expected: { video?: string | true; audio?: string | true }): Promise<void> {
  if (expected.audio) {
    await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 20);
    await grows(page, 'inbound-rtp', 'audio', 'bytesReceived', 1);
  }
  if (expected.video) {
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 5);
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    await grows(page, 'inbound-rtp', 'video', 'bytesReceived', 1);
  }
  for (const kind of ['audio', 'video'] as const) {
    if (typeof expected[kind] === 'string') expect(await codec(page, 'inbound-rtp', kind)).toBe(expected[kind]);
  }
  const frames = await sum(page, 'inbound-rtp', 'video', 'framesDecoded');
  const [transport] = await statsOf(page, 'transport');
  expect(transport.srtpCipher).toBeTruthy();
  const line = `SRTP ${transport.srtpCipher}, DTLS ${transport.tlsVersion} as ${transport.dtlsRole}, frames decoded ${frames}`;
  test.info().annotations.push({ type: 'media', description: line });
  console.log(`    ${test.info().title}: ${line}`);
}
