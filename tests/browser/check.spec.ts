// The connection check: what it says where all is well, where UDP is blocked, and when the server goes away meanwhile.
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { hideUdp } from './hide-udp';

/** Each way may take its time, and media is watched for some seconds. */
const DONE = { timeout: 60_000 };

async function start(page: Page, server: Server): Promise<void> {
  await page.goto(`${server.base}/check.html`);
  await page.getByTestId('start').click();
}

/** What the page says of each step, by its end. */
async function states(page: Page): Promise<Record<string, string | undefined>> {
  await expect(page.getByTestId('verdict')).toBeVisible(DONE);
  const rows = page.locator('[data-testid^="step-"]');
  return Object.fromEntries(await rows.evaluateAll((all) => all.map((row) => [(row as HTMLElement).dataset['testid']!.slice(5), (row as HTMLElement).dataset['state']])));
}

test('where all is well, it says so', FIREFOX, async ({ page }) => {
  test.skip(isReference, 'it has pages of its own');
  const server = await startServer({ workers: 1, config: 'ice_tcp = true' });
  try {
    await start(page, server);
    expect(await states(page)).toEqual({
      http: 'good', websocket: 'good', udp: 'good', tcp: 'good',
      'turn-udp': 'none', 'turn-tcp': 'none', 'turn-tls': 'none',
      send: 'good', receive: 'good', quality: 'good',
    });
    await expect(page.getByTestId('verdict')).toContainText('All works');
    await expect(page.getByTestId('step-udp')).toContainText(/works.*\d+ ms/);
    await expect(page.getByTestId('step-quality')).toContainText('round trip');
    const report = await page.getByTestId('report').inputValue();
    for (const part of [server.base, 'Portunus ', 'Mozilla/', 'Media by TCP            works', 'All works']) expect(report).toContain(part);
    await page.getByTestId('copy').click();
    await expect(page.getByTestId('copied')).toHaveText(/^(Copied|Selected)/);
    await expect(page.getByTestId('start')).toBeEnabled();
  } finally {
    expect(await server.stop(), server.log()).toBe(0);
  }
});

test('where UDP is blocked, it says that TCP works', FIREFOX, async ({ page }) => {
  test.skip(isReference, 'it has pages of its own');
  const server = await startServer({ workers: 1, config: 'ice_tcp = true' });
  try {
    await page.addInitScript(hideUdp);
    await start(page, server);
    expect(await states(page)).toMatchObject({ http: 'good', websocket: 'good', udp: 'bad', tcp: 'good', send: 'good', receive: 'good' });
    await expect(page.getByTestId('verdict')).toContainText('UDP is blocked between you and the server, but TCP works');
    await expect(page.getByTestId('step-udp')).toContainText('nothing came back');
  } finally {
    expect(await server.stop(), server.log()).toBe(0);
  }
});

test('where no way leads to the server, it says what the server could offer', async ({ page, server }) => {
  test.skip(isReference, 'it has pages of its own');
  await page.addInitScript(hideUdp);
  await start(page, server);
  expect(await states(page)).toMatchObject({ http: 'good', udp: 'bad', tcp: 'none', 'turn-tls': 'none', send: 'skipped', receive: 'skipped' });
  await expect(page.getByTestId('verdict')).toContainText('media.ice_tcp');
});

test('where WebSocket is blocked, it goes on by HTTP', async ({ page, server }) => {
  test.skip(isReference, 'it has pages of its own');
  await page.addInitScript(() => {
    const Original = window.WebSocket;
    window.WebSocket = new Proxy(Original, {
      construct: (target, [, protocol], newTarget) => Reflect.construct(target, ['ws://127.0.0.1:9/', protocol], newTarget),
    });
  });
  await start(page, server);
  expect(await states(page)).toMatchObject({ http: 'good', websocket: 'bad', udp: 'good', send: 'good', receive: 'good' });
  await expect(page.getByTestId('verdict')).toContainText('WebSocket is blocked');
});

test('a server that goes away meanwhile is named', FIREFOX, async ({ page }) => {
  test.skip(isReference, 'it has pages of its own');
  const server = await startServer({ workers: 1 });
  await start(page, server);
  await expect(page.getByTestId('step-receive')).toHaveAttribute('data-state', 'running', DONE);
  expect(await server.stop(), server.log()).toBe(0);
  expect(await states(page)).toMatchObject({ http: 'good', udp: 'good', quality: 'skipped' });
  await expect(page.getByTestId('verdict')).toContainText('went away');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('step-http')).toHaveAttribute('data-state', 'bad', DONE);
  await expect(page.getByTestId('verdict')).toContainText('does not answer', DONE);
});
