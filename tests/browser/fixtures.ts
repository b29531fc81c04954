// What every browser test gets: a running server, and pages whose PeerConnections can be looked into.
import { test as base, expect, type Page } from '@playwright/test';
import { buildSync } from 'esbuild';
import { startServer } from '../server/index.mjs';
import { recordPeerConnections } from './stats';
import type { Server } from '../server/portunus.mjs';

/** Marks a test that runs in Firefox as well as in Chromium. */
export const FIREFOX = { tag: '@firefox' };

/** The same for a test of this codec: for H.264 Firefox needs a library that it would download. */
export const firefoxWith = (codec: string) => (/h264/i.test(codec) ? {} : FIREFOX);

/**
 * Runs in a page before its scripts: its videos are decoded, but not painted. Without a graphics card, painting takes half of the CPU
 * time of a page with people in it. A test that looks at the page itself sets style sheets of its own (pictures.ts).
 */
export function unpainted(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('video { opacity: 0 !important }');
  document.adoptedStyleSheets = [sheet];
}

interface WorkerFixtures {
  server: Server;
  /** The script that gives a page `window.client`: janus.js without a page around it. */
  clientScript: string;
}

type ColorScheme = 'light' | 'dark';

export const test = base.extend<{ baseURL: string; serverLog: void; pageIn: (scheme: ColorScheme) => Promise<Page> }, WorkerFixtures>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2 });
      await use(server);
      const status = await server.stop();
      if (status !== 0) throw new Error(`The server ended with status ${status}:\n${server.log().slice(-4000)}`);
    },
    { scope: 'worker' },
  ],
  clientScript: [
    async ({}, use) => {
      const { outputFiles } = buildSync({
        entryPoints: [new URL('client.ts', import.meta.url).pathname],
        bundle: true,
        write: false,
        format: 'iife',
      });
      await use(outputFiles[0].text);
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ server }, use) => use(server.base),
  context: async ({ context }, use) => {
    await context.addInitScript(recordPeerConnections);
    await context.addInitScript(unpainted);
    await use(context);
    // Pages leave as a tab does that is closed. Without that, their sessions outlive them for 45 s, and the next test meets them.
    // Chromium's headless shell ends a page before it has sent what it sends when it goes, so that the page is told ahead.
    const told = (page: Page) => page.evaluate(() => void window.dispatchEvent(new Event('pagehide')));
    await Promise.all(context.pages().map((page) => told(page).then(() => page.goto('about:blank')).catch(() => undefined)));
  },
  /** Opens a page in a colour scheme. In Firefox only a setting chooses it, so that it takes a browser of its own. */
  pageIn: async ({ browser, browserName, playwright, launchOptions, baseURL }, use) => {
    const opened: { close(): Promise<void> }[] = [];
    await use(async (colorScheme) => {
      const prefs = { ...launchOptions.firefoxUserPrefs, 'layout.css.prefers-color-scheme.content-override': colorScheme === 'dark' ? 0 : 1 };
      const own = browserName === 'firefox' ? await playwright.firefox.launch({ ...launchOptions, firefoxUserPrefs: prefs }) : browser;
      const page = await own.newPage({ baseURL, colorScheme, reducedMotion: 'reduce' });
      opened.push(own === browser ? page : own);
      expect(await page.evaluate((scheme) => matchMedia(`(prefers-color-scheme: ${scheme})`).matches, colorScheme), colorScheme).toBe(true);
      return page;
    });
    for (const one of opened) await one.close();
  },
  serverLog: [
    async ({ server }, use, info) => {
      const before = server.log().length;
      await use();
      if (info.status !== info.expectedStatus) {
        await info.attach('server log', { body: server.log().slice(Math.max(0, before - 500)), contentType: 'text/plain' });
      }
    },
    { auto: true },
  ],
});

export { expect };
