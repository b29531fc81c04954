// What holds of each page: axe finds nothing, no script fails, nothing is wider than a phone, and no text of a control is cut off.
import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, test } from './fixtures';

test.skip(isReference, 'the pages are ours');

const PAGES = ['', 'echotest', 'videocall', 'streaming', 'videoroom', 'audioroom', 'textroom', 'voicemail', 'recordplay', 'sip', 'nosip', 'check'];
const ADMIN = ['', 'events', 'connection'];

const CONFIG = `
[[videoroom.room]]
room = 1
description = "A room with a name that is rather long, and longer than most"

[[audiobridge.room]]
room = 1
sampling_rate = 16000

[[streaming.mountpoint]]
id = 1
name = "stage"
type = "whip"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"
`;

let server: Server;
test.beforeAll(async () => {
  server = await startServer({ workers: 1, config: CONFIG });
});
test.afterAll(async () => {
  await server.stop();
});

/** Controls with a text that does not fit. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const context = document.createElement('canvas').getContext('2d')!;
    const tooNarrow = (control: HTMLElement): boolean => {
      if (!(control instanceof HTMLSelectElement)) return control.scrollWidth > control.clientWidth + 1;
      const style = getComputedStyle(control);
      context.font = style.font;
      const text = control.selectedOptions[0]?.textContent ?? '';
      // The arrow of a select takes about a line's height.
      const room = control.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16;
      return context.measureText(text).width > room;
    };
    return [...document.querySelectorAll<HTMLElement>('button, select, summary, label')]
      .filter((control) => control.checkVisibility() && tooNarrow(control))
      .map((control) => control.outerHTML.slice(0, 120));
  });
}

async function isFine(page: Page, what: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`), what).toEqual([]);
  for (const width of [360, 1100]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth), `${what} at ${width} px`).toBeLessThanOrEqual(width);
    expect(await cutOff(page), `${what} at ${width} px`).toEqual([]);
  }
}

for (const [kind, names] of [['calls', PAGES], ['dashboard', ADMIN]] as const) {
  for (const name of names) {
    test(`${kind}: ${name || 'index'}`, async ({ page }) => {
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(String(error)));
      const base = kind === 'calls' ? server.base : new URL(server.admin).origin;
      const query = name === 'connection' ? '?session=1&handle=1' : '';
      await page.goto(`${base}/${name && `${name}.html`}${query}`, { waitUntil: kind === 'calls' ? 'networkidle' : 'load' });
      for (const summary of await page.locator('summary').all()) if (await summary.isVisible()) await summary.click();
      await isFine(page, name);
      expect(errors).toEqual([]);
    });
  }
}

test('a room that somebody is in', async ({ page }) => {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.goto(`${server.base}/videoroom.html?room=1&name=Ann&source=synthetic&size=320x180&simulcast=0`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('mute-audio')).toBeVisible();
  await page.getByTestId('settings').click();
  await isFine(page, 'room');
  expect(errors).toEqual([]);
});
