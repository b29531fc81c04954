// Gives tests a `Client` in a page of the server's origin.
import type { Page } from '@playwright/test';
import type { Server } from '../server/portunus.mjs';

/** Opens a blank page of the server's and puts the client's script in it. */
export async function blankPage(page: Page, server: Server, script: string): Promise<void> {
  await page.goto(`${server.base}/index.html`);
  await page.addScriptTag({ content: script });
}

/** Opens a client as `window.client` and negotiates the given tracks (JavaScript source of the list). */
export async function start(page: Page, address: string, tracks: string, body: object = {}): Promise<void> {
  await page.evaluate(
    `(async () => {
      window.client = await Client.open(${JSON.stringify(address)});
      await client.negotiate(${tracks}, ${JSON.stringify(body)});
    })()`,
  );
}

/** Evaluates an expression in which `client` is known. */
export function client<T>(page: Page, expression: string): Promise<T> {
  return page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
}

export const AUDIO = `{ type: 'audio', capture: true, recv: true }`;
export const VIDEO = `{ type: 'video', capture: 'lowres-16:9', recv: true }`;
export const DATA = `{ type: 'data' }`;
