// Audio rooms for browser tests: a server that has some, and users on the page who each have a tone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import type { BrowserContext, Locator, Page } from '@playwright/test';
import { startServer } from '../server/index.mjs';
import { giveVoices, TONES } from './audio';
import { expect, test as base } from './fixtures';

export const SECRET = 's3cret';
export const PACKAGE = 'janus.plugin.audiobridge';

/** Rooms that the server has from the start. */
export const ROOMS = { demo: 1001, places: 1002, grouped: 1003, moderated: 1004, files: 1005, narrow: 1006, speech: 1007, closing: 1008 };

const EXTRA: Partial<Record<keyof typeof ROOMS, string>> = {
  places: 'spatial_audio = true',
  grouped: 'groups = ["hosts", "guests"]',
  speech: 'sampling_rate = 16_000',
};

const configOf = (folder: string) => `
[audiobridge]
folders = [${JSON.stringify(folder)}]
${(Object.keys(ROOMS) as (keyof typeof ROOMS)[])
  .map((name) => `[[audiobridge.room]]\nroom = ${ROOMS[name]}\ndescription = "${name}"\nsecret = "${SECRET}"\naudiolevel_event = true\naudio_active_packets = 15\naudio_level_average = 50\n${EXTRA[name] ?? ''}\n${EXTRA[name]?.includes('rate') ? '' : 'sampling_rate = 48_000\n'}`)
  .join('')}`;

export const test = base.extend<{}, { folder: string }>({
  folder: [
    async ({}, use) => {
      const folder = mkdtempSync(path(tmpdir(), 'portunus-announcements-'));
      await use(folder);
      rmSync(folder, { recursive: true });
    },
    { scope: 'worker' },
  ],
  server: [
    async ({ folder }, use) => {
      const server = await startServer({ workers: 2, config: configOf(folder) });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
  context: async ({ context }, use) => {
    await giveVoices(context);
    await use(context);
  },
});

export type Name = 'ann' | 'ben' | 'cleo';

/** Opens the page in a new tab and joins as a user would. */
export async function enter(context: BrowserContext, room: number, name: Name, query = ''): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`/audioroom.html?room=${room}&name=${name}&tone=${TONES[name]}${query}`);
  return join(page, name);
}

/** Joins as the page says. */
export async function join(page: Page, name: string): Promise<Page> {
  await page.getByTestId('join').click();
  await expect(page.getByTestId('status')).toContainText(`In the room as ${name}`);
  return page;
}

export const person = (page: Page, name: string): Locator => page.getByTestId(`person-${name}`);

export const slide = (page: Page, slider: string, value: number) =>
  page.getByTestId(slider).evaluate((input: HTMLInputElement, value) => {
    input.value = String(value);
    for (const event of ['input', 'change']) input.dispatchEvent(new Event(event));
  }, value);

export async function moderate(page: Page): Promise<void> {
  await page.getByTestId('moderate-open').click();
  await page.getByTestId('secret').fill(SECRET);
  await page.getByTestId('moderate').click();
  await expect(page.getByTestId('moderation')).toBeVisible();
}

export { expect };
