// Browsers that no UDP gets through to: they connect by TCP, to the ports that the server's candidates name.
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { mediaFlows, stats } from './stats';

/** Runs in the page before its scripts: neither side hears of the other's candidates of UDP. */
function hideUdp(): void {
  const isUdp = (line: string) => /^(a=)?candidate:\S+ \d+ udp /i.test(line);
  const without = (sdp = '') => sdp.split(/(?<=\n)/).filter((line) => !isUdp(line)).join('');
  const connection = RTCPeerConnection.prototype;
  // Of their overloads those with promises.
  const setRemoteDescription: (description: RTCSessionDescriptionInit) => Promise<void> = connection.setRemoteDescription;
  const addIceCandidate: (candidate?: RTCIceCandidateInit | null) => Promise<void> = connection.addIceCandidate;
  connection.setRemoteDescription = function (description: RTCSessionDescriptionInit) {
    return setRemoteDescription.call(this, { ...description, type: description.type, sdp: without(description.sdp) });
  };
  connection.addIceCandidate = function (candidate?: RTCIceCandidateInit | null) {
    return isUdp(candidate?.candidate ?? '') ? Promise.resolve() : addIceCandidate.call(this, candidate ?? undefined);
  };
  const own = Object.getOwnPropertyDescriptor(connection, 'localDescription')!;
  Object.defineProperty(connection, 'localDescription', {
    get() {
      const description = own.get!.call(this) as RTCSessionDescription | null;
      return description && new RTCSessionDescription({ type: description.type, sdp: without(description.sdp) });
    },
  });
  const Original = window.RTCPeerConnection;
  window.RTCPeerConnection = new Proxy(Original, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget) as RTCPeerConnection;
      // It is the first to listen.
      made.addEventListener('icecandidate', (event) => {
        if (event.candidate && isUdp(event.candidate.candidate)) event.stopImmediatePropagation();
      });
      return made;
    },
  });
}

/** By what the page and the server reach each other. */
async function carrier(page: Page): Promise<string | undefined> {
  const all = await stats(page);
  const pairs = all.filter((stat) => stat.type === 'candidate-pair' && stat.nominated && stat.state === 'succeeded');
  const [busiest] = pairs.sort((a, b) => b.bytesSent - a.bytesSent);
  return all.find((stat) => stat.id === busiest?.remoteCandidateId)?.protocol;
}

async function metric(base: string, name: string): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

for (const [name, config] of Object.entries({ full: 'ice_tcp = true', lite: 'ice_tcp = true\nice_lite = true' })) {
  test(`a call by TCP alone, ICE ${name}`, FIREFOX, async ({ page }) => {
    test.skip(isReference, 'starts servers of its own');
    const server = await startServer({ workers: 1, config });
    try {
      await page.addInitScript(hideUdp);
      await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8`);
      await page.getByTestId('start').click();
      await mediaFlows(page, { audio: 'opus', video: 'VP8' });
      expect(await carrier(page)).toBe('tcp');
      await page.getByTestId('text-input').fill('hello');
      await page.getByTestId('text-send').click();
      await expect(page.getByTestId('text-log')).toContainText('You wrote: hello');
      expect(await metric(server.base, 'portunus_media_tcp_connections')).toBeGreaterThan(0);
      await page.getByTestId('restart').click();
      await mediaFlows(page, { audio: true, video: true });
      expect(await metric(server.base, 'portunus_media_tcp_dropped_total')).toBe(0);
      await page.close();
      await expect.poll(() => metric(server.base, 'portunus_media_tcp_connections')).toBe(0);
    } finally {
      expect(await server.stop(), server.log()).toBe(0);
    }
  });
}

test('UDP goes before TCP', FIREFOX, async ({ page }) => {
  test.skip(isReference, 'starts servers of its own');
  const server = await startServer({ workers: 1, config: 'ice_tcp = true' });
  try {
    await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8`);
    await page.getByTestId('start').click();
    await mediaFlows(page, { audio: 'opus', video: 'VP8' });
    expect(await carrier(page)).toBe('udp');
  } finally {
    expect(await server.stop(), server.log()).toBe(0);
  }
});
