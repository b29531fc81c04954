// Pages of the guides, with the code as it stands there.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { BrowserContext, Page } from '@playwright/test';
import { buildSync } from 'esbuild';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, test } from './fixtures';

test.skip(isReference, 'it needs rooms of its own');

/** The first block of a language in a guide. */
function shown(guide: string, language: string): string {
  const text = readFileSync(new URL(`../../docs/guides/${guide}.md`, import.meta.url), 'utf8');
  const block = text.split(`\`\`\`${language}\n`)[1]?.split('```')[0];
  if (!block) throw new Error(`${guide} has no ${language}`);
  return block;
}

/** Serves the page of a guide, and opens it for some people. */
async function withPages(guide: string, context: BrowserContext, names: string[], use: (pages: Page[]) => Promise<void>): Promise<void> {
  const server: Server = await startServer({ workers: 1, config: shown(guide, 'toml') });
  const contents = shown(guide, 'js').replace('ws://localhost:8188', server.ws);
  const stdin = { contents, resolveDir: new URL('.', import.meta.url).pathname };
  const script = buildSync({ stdin, bundle: true, write: false, format: 'iife' }).outputFiles[0].text;
  const web = createServer(({ url }, response) => {
    const isScript = url === '/bundle.js';
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? script : shown('room', 'html'));
  }).listen(0, '127.0.0.1');
  await once(web, 'listening');
  try {
    const pages: Page[] = [];
    for (const name of names) {
      const page = await context.newPage();
      page.on('dialog', (dialog) => (dialog.type() === 'prompt' ? dialog.accept(name) : dialog.dismiss()));
      await page.goto(`http://localhost:${(web.address() as AddressInfo).port}/`);
      await page.locator('#join').click();
      pages.push(page);
    }
    await use(pages);
  } finally {
    web.close();
    web.closeAllConnections();
    expect(await server.stop(), server.log().slice(-4000)).toBe(0);
  }
}

/** How long each of these elements has played, in seconds. */
function played(page: Page, element: 'audio' | 'video'): Promise<number[]> {
  return page.locator(element).evaluateAll((all) => (all as HTMLMediaElement[]).map((one) => one.currentTime));
}

test('an audio room in a page of your own: everybody hears the mix once', async ({ context }) => {
  await withPages('audio-room', context, ['Ann', 'Bob'], async ([ann, bob]) => {
    for (const [page, other] of [[ann, 'Bob'], [bob, 'Ann']] as const) {
      await expect(page.locator('#people')).toContainText(other);
      // The packets have come, of which janus.js tells as well.
      await expect.poll(async () => Math.max(0, ...(await played(page, 'audio')))).toBeGreaterThan(2);
      expect(await played(page, 'audio')).toHaveLength(1);
    }
  });
});

test('a video room in a page of your own: everybody sees the others once', async ({ context }) => {
  await withPages('room', context, ['Ann', 'Bob'], async (pages) => {
    for (const page of pages) {
      await expect(page.locator('video')).toHaveCount(2);
      await expect.poll(async () => Math.min(...(await played(page, 'video')))).toBeGreaterThan(2);
      await expect(page.locator('video')).toHaveCount(2);
    }
  });
});
