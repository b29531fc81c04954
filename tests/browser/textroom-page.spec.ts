// The text room page, driven as users do: several tabs in one room.
import type { BrowserContext, Page } from '@playwright/test';
import { startServer } from '../server/index.mjs';
import { expect, FIREFOX, test as base } from './fixtures';
import { ask } from './room';

const PIN = '4321';
const SECRET = 's3cret';
const PACKAGE = 'janus.plugin.textroom';

/** Rooms that the server has from the start. */
const ROOMS = { demo: 1001, locked: 1002, moderated: 1003, closing: 1004, busy: 1005, narrow: 1006 };

const CONFIG = `
[textroom]
message_rate = 5
message_burst = 8
${Object.entries(ROOMS).map(([name, room]) => `[[textroom.room]]\nroom = ${room}\ndescription = "${name}"\nhistory = 20\nsecret = "${SECRET}"\n`).join('')}
`.replace('description = "locked"', `description = "locked"\npin = "${PIN}"`);

const test = base.extend<{}, {}>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: CONFIG });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});

/** Opens the page in a new tab and joins as a user would. */
async function enter(context: BrowserContext, room: number, name: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`/textroom.html?room=${room}&name=${name}`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('status')).toContainText(`In the room as ${name}`);
  return page;
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByTestId('text-input').fill(text);
  await page.getByTestId('text-send').click();
  await expect(page.getByTestId('text-input')).toHaveValue('');
}

const line = (page: Page, text: string) => page.getByTestId('line').filter({ hasText: text });

test('two tabs write to each other, with times, and whoever comes later reads what was said', FIREFOX, async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  await expect(ann.getByTestId('room-title')).toHaveText('demo');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await expect(ann.getByTestId('people')).toContainText('Ben');
  await expect(ben.getByTestId('people')).toContainText('Ann');
  await expect(ben.getByTestId('people-count')).toHaveText('2');
  await expect(ann.getByTestId('log')).toContainText('Ben joined.');

  await say(ann, 'Hello, <b>wörld</b>');
  for (const page of [ann, ben]) {
    const said = line(page, 'Hello');
    await expect(said.getByTestId('said')).toHaveText('Hello, <b>wörld</b>');
    await expect(said).toContainText('Ann');
    const time = await said.getByTestId('time').getAttribute('datetime');
    expect(Math.abs(Date.parse(time ?? '') - Date.now())).toBeLessThan(60_000);
  }
  await say(ben, 'Hi Ann');
  await expect(line(ann, 'Hi Ann')).toContainText('Ben');

  const cleo = await enter(context, ROOMS.demo, 'Cleo');
  await expect(line(cleo, 'Hello')).toContainText('Ann');
  await expect(line(cleo, 'Hi Ann')).toHaveCount(1);
  await cleo.getByTestId('leave').click();
  await expect(cleo.getByTestId('lobby')).toBeVisible();
  await expect(ann.getByTestId('log')).toContainText('Cleo left.');
  await expect(ann.getByTestId('person-Cleo')).toHaveCount(0);
  // She comes back on the same page, and a tab that is closed leaves too.
  await cleo.getByTestId('join').click();
  await expect(ann.getByTestId('person-Cleo')).toBeVisible();
  await cleo.close();
  await expect(ann.getByTestId('person-Cleo')).toHaveCount(0);
});

test('a whisper is read by one', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  const cleo = await enter(context, ROOMS.demo, 'Cleo');
  await expect(ann.getByTestId('people-count')).toHaveText('3');
  await ann.getByTestId('person-Ben').getByTestId('whisper').click();
  await expect(ann.getByTestId('to')).toHaveValue('Ben');
  await say(ann, 'between us');
  await expect(line(ann, 'between us')).toContainText('to Ben');
  await expect(line(ben, 'between us')).toContainText('whispers');
  await ann.getByTestId('to').selectOption('');
  await say(ann, 'to all');
  await expect(line(cleo, 'to all')).toHaveCount(1);
  await expect(line(cleo, 'between us')).toHaveCount(0);
});

test('a room is made, found by its link, opened by its PIN, and moderated', async ({ context }) => {
  const ann = await context.newPage();
  await ann.goto('/textroom.html?name=Ann');
  await ann.getByTestId('create-open').click();
  await ann.getByTestId('create-more').click();
  await ann.getByTestId('new-description').fill('Planning');
  await ann.getByTestId('new-pin').fill(PIN);
  await ann.getByTestId('new-secret').fill(SECRET);
  await ann.getByTestId('create-room').click();
  await expect(ann.getByTestId('room-title')).toHaveText('Planning');
  await ann.getByTestId('copy-link').click();
  const link = await ann.getByTestId('link').inputValue();
  expect(link).not.toContain(PIN);

  const ben = await context.newPage();
  await ben.goto(`${link}&name=Ben`);
  // The list says that it takes a PIN.
  await ben.getByTestId('pin').fill('0000');
  await ben.getByTestId('join').click();
  await expect(ben.getByTestId('notice')).toContainText('not the PIN');
  await ben.getByTestId('pin').fill(PIN);
  await ben.getByTestId('join').click();
  await expect(ben.getByTestId('person-Ann')).toBeVisible();
  await ben.getByTestId('moderate-open').click();
  await ben.getByTestId('secret').fill('guess');
  await ben.getByTestId('moderate').click();
  await expect(ben.getByTestId('notice')).toContainText('not the secret');
  await expect(ben.getByTestId('kick')).toHaveCount(0);

  // Who made the room knows its secret already.
  await ann.getByTestId('moderate-open').click();
  await ann.getByTestId('announcement-input').fill('Lunch is ready');
  await ann.getByTestId('announce').click();
  await expect(ben.getByTestId('announcement')).toContainText('Lunch is ready');
  await ann.getByTestId('person-Ben').getByTestId('kick').click();
  await expect(ben.getByTestId('lobby')).toBeVisible();
  await expect(ben.getByTestId('notice')).toContainText('removed you');
  await expect(ann.getByTestId('log')).toContainText('Ben was removed.');
  await ann.getByTestId('close-room').click();
  await expect(ann.getByTestId('notice')).toContainText('The room was closed');
  await expect(ann.getByTestId('lobby')).toBeVisible();
});

test('what goes wrong is said in words', async ({ context, server }) => {
  const ann = await enter(context, ROOMS.busy, 'Ann');
  const other = await context.newPage();
  await other.goto(`/textroom.html?room=${ROOMS.busy}&name=Ann`);
  await other.getByTestId('join').click();
  await expect(other.getByTestId('notice')).toContainText('has this name');
  await other.getByTestId('name').fill('Ben');
  await other.getByTestId('room').fill('99999');
  await other.getByTestId('join').click();
  await expect(other.getByTestId('notice')).toContainText('no such room');

  // Whoever writes too fast keeps the text, and can send it a moment later.
  const input = ann.getByTestId('text-input');
  await expect(async () => {
    for (let n = 0; n < 12; n++) {
      await input.fill(`line ${n}`);
      await input.press('Enter');
    }
    await expect(ann.getByTestId('notice')).toContainText('faster than the server allows', { timeout: 1000 });
  }).toPass();
  await expect(input).not.toHaveValue('');
  await expect(async () => {
    await ann.getByTestId('text-send').click();
    await expect(input).toHaveValue('', { timeout: 1000 });
  }).toPass();
  await expect(ann.getByTestId('notice')).toBeHidden();

  const gone = await ask(server, { request: 'destroy', room: ROOMS.closing, secret: SECRET }, PACKAGE);
  expect(gone).toMatchObject({ textroom: 'destroyed' });
  await other.getByTestId('room').fill(String(ROOMS.closing));
  await other.getByTestId('join').click();
  await expect(other.getByTestId('notice')).toContainText('no such room');
});

test('the room fits a phone', async ({ context }, info) => {
  const page = await enter(context, ROOMS.narrow, 'Ann');
  await page.setViewportSize({ width: 360, height: 740 });
  await enter(context, ROOMS.narrow, 'Benjamin-with-a-name-that-is-really-long-for-a-phone');
  await say(page, `A-word-that-does-not-end-${'x'.repeat(200)}`);
  await expect(page.getByTestId('people-count')).toHaveText('2');
  await page.getByTestId('moderate-open').click();
  await page.getByTestId('secret').fill(SECRET);
  await page.getByTestId('moderate').click();
  await expect(page.getByTestId('moderation')).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  for (const button of await page.getByRole('button').all()) {
    if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
  await page.screenshot({ path: info.outputPath('phone.png'), fullPage: true });
});
