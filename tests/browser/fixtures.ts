// What every browser test gets: a running server, and pages whose PeerConnections can be looked into.
import { test as base, expect } from '@playwright/test';
import { buildSync } from 'esbuild';
import { startServer } from '../server/index.mjs';
import { recordPeerConnections } from './stats';
import type { Server } from '../server/portunus.mjs';

/** Marks a test that runs in Firefox as well as in Chromium. */
export const FIREFOX = { tag: '@firefox' };

/** The same for a test of this codec: for H.264 Firefox needs a library that it would download. */
export const firefoxWith = (codec: string) => (/h264/i.test(codec) ? {} : FIREFOX);

interface WorkerFixtures {
  server: Server;
  /** The script that gives a page `window.client`: janus.js without a page around it. */
  clientScript: string;
}

export const test = base.extend<{ baseURL: string; serverLog: void }, WorkerFixtures>({
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
    await use(context);
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
