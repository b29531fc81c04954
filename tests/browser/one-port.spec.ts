// Workers that share one port: the kernel gives most datagrams of a browser to another worker than that of its PeerConnection.
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { hideUdp } from './hide-udp';
import { mediaFlows } from './stats';

const CONFIG = 'one_port = true\nice_tcp = true';

async function metric(base: string, name: string): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** Calls, and has sound, picture and text back. */
async function call(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/echotest.html?size=320x180&codec=vp8`);
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: 'opus', video: 'VP8' });
  await page.getByTestId('text-input').fill('hello');
  await page.getByTestId('text-send').click();
  await expect(page.getByTestId('text-log')).toContainText('You wrote: hello');
}

// Firefox does it by TCP, below: four of its calls at once take a busy machine minutes.
test('calls on four workers that share a port', async ({ context }) => {
  test.skip(isReference, 'starts servers of its own');
  const server = await startServer({ workers: 4, config: CONFIG });
  try {
    // Each is on a worker of its own.
    for (let calls = 0; calls < 4; calls += 1) {
      const page = await context.newPage();
      await call(page, server.base);
      await page.getByTestId('restart').click();
      await mediaFlows(page, { audio: true, video: true });
    }
    for (const page of context.pages().filter((it) => it.url().startsWith(server.base))) {
      await mediaFlows(page, { audio: true, video: true });
    }
    expect(await metric(server.base, 'portunus_media_handed_over_total')).toBeGreaterThan(100);
    expect(await metric(server.base, 'portunus_media_handover_dropped_total')).toBe(0);
  } finally {
    expect(await server.stop(), server.log()).toBe(0);
  }
});

test('calls by TCP on four workers that share a port', FIREFOX, async ({ context }) => {
  test.skip(isReference, 'starts servers of its own');
  const server = await startServer({ workers: 4, config: CONFIG });
  try {
    await context.addInitScript(hideUdp);
    for (let calls = 0; calls < 4; calls += 1) {
      await call(await context.newPage(), server.base);
    }
    expect(await metric(server.base, 'portunus_media_tcp_connections')).toBeGreaterThanOrEqual(4);
    expect(await metric(server.base, 'portunus_media_received_datagrams_total')).toBe(0);
  } finally {
    expect(await server.stop(), server.log()).toBe(0);
  }
});
