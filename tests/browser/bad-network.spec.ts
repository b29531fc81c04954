// A browser's call over a network that loses and reorders, is gone for a while, and gives the browser another port and address. A
// relay of UDP in front of the server is that network. The browser's own address stays, as behind a router or a VPN that moves:
// Chromium gathers its candidates once, so that the loss of the address itself takes a new offer (an ICE restart).
import type { Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { startPortunus } from '../server/portunus.mjs';
import { startRelay } from '../server/relay.mjs';
import { expect, test } from './fixtures';
import { grows, mediaFlows, sum } from './stats';

const OUTAGE_MS = 10_000;

/**
 * In the page before its scripts: counts offers, notes states, and hides candidates, so that the server is reached by the relay only.
 * The page would restart ICE when nothing comes for a moment; here it may not, since the call has to go on without.
 */
function observe(): void {
  const seen = { offers: 0, states: [] as string[] };
  (window as any).seen = seen;
  const Original = window.RTCPeerConnection;
  const { createOffer } = Original.prototype;
  Original.prototype.createOffer = function (this: RTCPeerConnection, ...args: any[]) {
    if (args[0]?.iceRestart) return Promise.reject(new Error('ICE is not restarted here'));
    seen.offers += 1;
    return (createOffer as any).apply(this, args);
  };
  window.RTCPeerConnection = new Proxy(Original, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget) as RTCPeerConnection;
      // It is the first to listen.
      made.addEventListener('icecandidate', (event) => event.candidate?.candidate && event.stopImmediatePropagation());
      made.addEventListener('iceconnectionstatechange', () => seen.states.push(made.iceConnectionState));
      return made;
    },
  });
}

type Seen = { offers: number; states: string[] };

const seen = (page: Page) => page.evaluate(() => (window as any).seen) as Promise<Seen>;

/** The picture comes back, and the sound. */
async function echoes(page: Page): Promise<void> {
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 30);
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 50);
}

const NEW_PORT = '127.0.0.1';
const NEW_ADDRESS = '127.0.0.3';

for (const [name, config, moves, workers] of [
  ['full', '', [NEW_PORT, NEW_ADDRESS], 1],
  ['full, workers on one port', 'one_port = true\n', [NEW_PORT, NEW_ADDRESS], 4],
  // With ICE-lite the browser has to find out that its checks are not answered, which takes it longer.
  ['lite', 'ice_lite = true\n', [NEW_ADDRESS], 1],
] as const) {
  test(`a tenth is lost, nothing gets through for 10 s, the address changes: the call goes on without a new offer, ICE ${name}`, async ({ page }) => {
    test.skip(isReference, 'starts a server of its own');
    const relay = await startRelay(1);
    const server = await startPortunus({ workers, config: `${relay.config}${config}` });
    relay.to(server.media);
    try {
      await page.addInitScript(observe);
      await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8`);
      await page.getByTestId('start').click();
      await mediaFlows(page, { audio: 'opus', video: 'VP8' });

      await test.step('a tenth is lost, a tenth comes late', async () => {
        relay.set({ loss: 0.1, late: 0.1 });
        const before = relay.count();
        await echoes(page);
        await echoes(page);
        expect(relay.count().lost).toBeGreaterThan(before.lost);
        expect(relay.count().late).toBeGreaterThan(before.late);
      });

      await test.step('nothing gets through for ten seconds', async () => {
        relay.set({ outage: true });
        const packets = () => sum(page, 'inbound-rtp', 'audio', 'packetsReceived');
        const last = await packets();
        await new Promise((done) => setTimeout(done, OUTAGE_MS));
        // What had passed the relay may have come.
        expect(await packets()).toBeLessThan(last + 25);
        relay.set({ outage: false });
        await echoes(page);
      });
      relay.set({ loss: 0, late: 0 });

      for (const address of moves) {
        await test.step(address === NEW_PORT ? 'a new port' : 'a new address', async () => {
          relay.move(address);
          await echoes(page);
        });
      }
      const { offers, states } = await seen(page);
      expect(offers).toBe(1);
      expect(states).not.toContain('failed');
      expect(states.at(-1)).toMatch(/connected|completed/);
    } finally {
      expect(await server.stop(), server.log()).toBe(0);
      relay.close();
    }
  });
}
