// Servers whose API is elsewhere, or closed: the pages find it, and ask for what opens it.
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, test } from './fixtures';

test.skip(isReference, 'starts servers of its own');

const SECRET = 's3cret & more';

async function withServer(options: Parameters<typeof startServer>[0], use: (server: Server) => Promise<void>): Promise<void> {
  const server = await startServer({ workers: 1, ...options });
  try {
    await use(server);
  } finally {
    expect(await server.stop(), server.log().slice(-4000)).toBe(0);
  }
}

async function echoes(page: Page): Promise<void> {
  await page.getByTestId('start').click();
  await expect(page.getByTestId('status')).toContainText('Connected');
}

/** Enters what is asked for. */
async function enter(page: Page, field: 'secret' | 'token', value: string): Promise<void> {
  await page.getByTestId(`access-${field}`).fill(value);
  await page.getByTestId('access-open').click();
}

test('the pages find an API at another path', async ({ page }) => {
  await withServer({ basePath: '/rtc/v1.0' }, async ({ base }) => {
    await page.goto(`${base}/`);
    await expect(page.getByTestId('info')).toContainText('echotest');
    await expect(page.getByTestId('api-http')).toHaveText(`${base}/rtc/v1.0`);
    await expect(page.getByTestId('api-info')).toHaveAttribute('href', '/rtc/v1.0/info');
    for (const transport of ['ws', 'http']) {
      await page.goto(`${base}/echotest.html?source=synthetic&size=320x180&transport=${transport}`);
      await echoes(page);
    }
    await page.goto(`${base}/videoroom.html`);
    await expect(page.getByTestId('lobby')).toBeVisible();
    await expect(page.locator('#no-rooms')).toBeVisible();
    // What another server has told is not taken for this one's.
    const [other, own] = await page.evaluate(async () => {
      const { headers } = await fetch('/echotest.html');
      const again = await fetch('/echotest.html', { headers: { 'if-none-match': headers.get('etag') ?? '' }, cache: 'no-store' });
      return [headers.get('etag'), again.status];
    });
    expect(other).toContain('/rtc/v1.0');
    expect(own).toBe(304);
  });
});

for (const transport of ['ws', 'http']) {
  test(`the API secret is asked for, and kept in the tab, over ${transport}`, async ({ page, context }) => {
    await withServer({ config: `\n[server]\napi_secret = "${SECRET}"\n` }, async ({ base }) => {
      const url = `${base}/echotest.html?source=synthetic&size=320x180&transport=${transport}`;
      await page.goto(url);
      await page.getByTestId('start').click();
      await expect(page.getByTestId('access-why')).toContainText('asks for its API secret');
      await enter(page, 'secret', 'guess');
      await expect(page.getByTestId('access-why')).toContainText('not what the server asks for');
      await enter(page, 'secret', SECRET);
      await expect(page.getByTestId('status')).toContainText('Connected');
      await expect(page.getByTestId('access')).toHaveCount(0);
      await page.reload();
      await echoes(page);
      // Other pages of the tab know it too, and other tabs do not.
      await page.goto(`${base}/streaming.html?transport=${transport}`);
      await expect(page.getByTestId('status')).toHaveText('Ready.');
      await expect(page.getByTestId('access')).toHaveCount(0);
      const tab = await context.newPage();
      await tab.goto(`${base}/videoroom.html?transport=${transport}`);
      await expect(tab.getByTestId('access')).toBeVisible();
      await tab.getByTestId('room').fill('1');
      await tab.getByTestId('name').fill('Ann');
      // Whatever else is wanted meanwhile waits for the same answer.
      await tab.getByTestId('join').click();
      await expect(tab.getByTestId('access')).toHaveCount(1);
      await enter(tab, 'secret', SECRET);
      await expect(tab.getByTestId('notice')).toContainText('no such room');
      const metrics = async () => (await fetch(`${base}/metrics`)).text();
      await expect.poll(metrics).toContain('\nportunus_sessions 2\n');
    });
  });
}

test('a token opens what it is for', async ({ page }) => {
  const tokens = '[{ token = "echo", plugins = ["janus.plugin.echotest"] }]';
  await withServer({ config: `\n[server]\ntoken_auth = true\ntokens = ${tokens}\n` }, async ({ base }) => {
    await page.goto(`${base}/echotest.html?source=synthetic&size=320x180`);
    await page.getByTestId('start').click();
    await enter(page, 'token', 'echo');
    await expect(page.getByTestId('status')).toContainText('Connected');
    await page.goto(`${base}/videocall.html?name=ann`);
    await page.getByTestId('register').click();
    await expect(page.getByTestId('notice')).toContainText('does not open this page');
    await page.reload();
    await page.getByTestId('register').click();
    await expect(page.getByTestId('access')).toBeVisible();
  });
});
