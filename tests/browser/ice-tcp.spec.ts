// Browsers that no UDP gets through to: they connect by TCP, to the ports that the server's candidates name.
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { hideUdp } from './hide-udp';
import { mediaFlows, stats } from './stats';

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
