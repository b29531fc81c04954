// What holds of each page, which is loaded once for all of it: it looks as in the documentation, axe finds nothing, text and controls
// have enough contrast in both schemes, no script fails, no other host is asked, nothing is wider than a phone or cut off.
import AxeBuilder from '@axe-core/playwright';
import type { Page, TestInfo } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { contrasts } from './contrast';
import { expect, test } from './fixtures';
import { compare, DESK, look, PHONE } from './pictures';

test.skip(isReference, 'the pages are ours');

const PAGES = ['', 'echotest', 'videocall', 'streaming', 'videoroom', 'audioroom', 'textroom', 'voicemail', 'recordplay', 'sip', 'nosip', 'check'];
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

/** Controls that a thumb does not hit. */
function tooSmall(page: Page): Promise<string[]> {
  return page.locator('button').evaluateAll((all) =>
    all.filter((button) => button.checkVisibility() && button.getBoundingClientRect().height < 43.5).map((button) => button.outerHTML.slice(0, 120)),
  );
}

/** Controls that screen readers have no name for, and buttons that look pressed always. */
function odd(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const nameless = [...document.querySelectorAll<HTMLInputElement>('input, select, button, video')].filter(
      (control) => !control.labels?.length && !control.ariaLabel && !control.getAttribute('aria-labelledby') && !control.textContent?.trim(),
    );
    return [...nameless, ...document.querySelectorAll('button.primary[aria-pressed]')].map((control) => control.outerHTML.slice(0, 120));
  });
}

/** Collects what a page asks of other hosts, and what fails in it. */
function watch(page: Page): string[] {
  const wrong: string[] = [];
  page.on('request', (request) => /^(data|blob):/.test(request.url()) || new URL(request.url()).hostname === '127.0.0.1' || wrong.push(request.url()));
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  return wrong;
}

/** Checks a page as it is, at both sizes and in both schemes. `picture` names its picture. */
async function isFine(page: Page, what: string, info: TestInfo, picture?: string, { onPhone = async () => {} }: { onPhone?: () => Promise<unknown> } = {}): Promise<void> {
  const fits = async (width: number) => {
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: `${what} at ${width} px` }).toBeLessThanOrEqual(width);
    // What does not fit moves into menus a moment after the window has changed.
    await expect.poll(() => cutOff(page), { message: `${what} at ${width} px` }).toEqual([]);
  };
  await page.setViewportSize(DESK);
  await page.evaluate(() => window.scrollTo(0, 0));
  await fits(DESK.width);
  const desk = picture && (await look(page));
  await page.setViewportSize(PHONE);
  await onPhone();
  await fits(PHONE.width);
  const phone = picture && (await look(page));
  if (picture && desk && phone) await compare(page, picture, [desk, phone], info);
  // The links to the pages are in a menu, which shows where one is.
  const menu = page.getByTestId('menu');
  if (await menu.isVisible()) {
    expect((await page.getByRole('banner').boundingBox())?.height).toBeLessThan(80);
    await menu.click();
    const here = page.locator('header .links [aria-current="page"]');
    if ((await here.count()) > 0) await expect(here.first()).toBeInViewport({ ratio: 1 });
    await fits(PHONE.width);
    await page.keyboard.press('Escape');
    await expect(page.locator('header .links')).toBeHidden();
  }
  // What is folded has to fit, too.
  for (const summary of await page.locator('details:not([open]) > summary').all()) if (await summary.isVisible()) await summary.click();
  // Some have more within.
  for (const summary of await page.locator('details:not([open]) > summary').all()) if (await summary.isVisible()) await summary.click();
  await fits(PHONE.width);
  expect(await tooSmall(page), what).toEqual([]);
  await page.setViewportSize(DESK);
  await fits(DESK.width);
  expect(await odd(page), what).toEqual([]);
}

/** axe finds nothing, but for what these rules say. */
async function isAccessible(page: Page, what: string, but: string[] = []): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).disableRules(but).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`), what).toEqual([]);
}

/** Checks the contrast in both schemes and the accessibility, also of what is hidden at first, and of each kind of notice. It spoils the page. */
async function isReadable(page: Page, what: string): Promise<void> {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.evaluate(() => {
    for (const element of document.querySelectorAll<HTMLElement>('[hidden]')) element.hidden = false;
    for (const kind of ['info', 'warning', 'error']) {
      const notice = document.createElement('div');
      notice.className = `notice ${kind}`;
      notice.innerHTML = `<p>A notice, ${kind}, with <a href="/">a link</a></p><button>Go on</button>`;
      document.querySelector('main')?.append(notice);
    }
  });
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const { seen, poor } = await contrasts(page);
    expect(poor, `${what}, ${colorScheme}`).toEqual([]);
    expect(seen, what).toBeGreaterThan(20);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  // Headings of what is hidden get their text when it is shown. The contrast is known by now, and takes axe most of its time.
  await isAccessible(page, what, ['empty-heading', 'color-contrast']);
}

for (const name of PAGES) {
  test(`the page ${name || 'index'}`, async ({ page }, info) => {
    const wrong = watch(page);
    await page.goto(`${server.base}/${name && `${name}.html`}`, { waitUntil: 'networkidle' });
    await isFine(page, name, info, name || 'index');
    await isReadable(page, name);
    expect(wrong).toEqual([]);
  });
}

/** What the Admin API says, but for how late the workers are: that is the machine's matter, which runs other tests. */
async function withoutDelays(page: Page): Promise<void> {
  await page.route('**/admin**', async (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    const answer = await (await route.fetch()).json();
    for (const worker of answer.workers ?? []) Object.assign(worker, { lag_max: 0.0004, lag_median: 0.0001, core_share: 0.02 });
    if (answer.info?.diagnosis) answer.info.diagnosis = answer.info.diagnosis.filter(({ cause }: { cause: string }) => !cause.startsWith('worker'));
    await route.fulfill({ json: answer });
  });
}

/** Ann and Ben are in the room, and see each other. `page` is Ann's. */
async function inRoom(page: Page): Promise<void> {
  const query = 'size=320x180&simulcast=0';
  const other = await page.context().newPage();
  await other.goto(`${server.base}/videoroom.html?room=1&name=Ben&join=1&${query}`);
  await page.goto(`${server.base}/videoroom.html?room=1&name=Ann&join=1&${query}`);
  for (const name of ['You', 'Ben']) {
    const shown = () => page.getByTestId(`tile-${name}`).getByTestId('video').evaluate((video: HTMLVideoElement) => video.getVideoPlaybackQuality().totalVideoFrames);
    await expect.poll(shown, name).toBeGreaterThan(10);
  }
  await expect(page.getByTestId('present')).toHaveText('2 here');
}

test('a room that people are in', async ({ page }, info) => {
  const wrong = watch(page);
  await inRoom(page);
  await expect(page.getByTestId('mute-audio')).toBeVisible();
  await expect(page.getByTestId('notice')).toBeHidden();
  await page.getByTestId('open-people').click();
  const onPhone = async () => {
    await page.keyboard.press('p');
    await expect(page.getByTestId('hand')).toBeHidden();
  };
  await isFine(page, 'room', info, 'room', { onPhone });
  const manage = async (request: object) => {
    const body = JSON.stringify({ janus: 'message_plugin', transaction: 't', plugin: 'janus.plugin.videoroom', request });
    return ((await (await fetch(server.admin, { method: 'POST', body })).json()) as any).response;
  };
  const { participants } = await manage({ request: 'listparticipants', room: 1 });
  await manage({ request: 'rtp_forward', room: 1, publisher_id: participants[0].id, host: '127.0.0.1', streams: [{ mid: '0', port: 9 }] });
  await expect(page.getByTestId('forwarding')).toBeVisible();
  await page.getByTestId('settings').click();
  await page.getByTestId('details').click();
  await isFine(page, 'room with figures', info);
  await isAccessible(page, 'room with figures');
  expect(wrong).toEqual([]);
});

test('the dashboard while people are in a room', async ({ page, context }, info) => {
  await inRoom(page);
  const admin = await context.newPage();
  const wrong = watch(admin);
  await withoutDelays(admin);
  const origin = new URL(server.admin).origin;
  await admin.goto(origin);
  await expect(admin.getByTestId('sessions')).toContainText('room 1 · Ann');
  await expect(admin.getByTestId('hour-bits-in')).toContainText('at most');
  await isFine(admin, 'dashboard', info, 'dashboard');
  await isReadable(admin, 'dashboard');
  await admin.goto(origin);
  await admin.getByTestId('sessions').getByRole('link').filter({ hasText: 'Ann' }).first().click();
  await expect(admin.getByTestId('pairs').locator('tbody tr')).not.toHaveCount(0);
  await isFine(admin, 'connection', info, 'connection');
  await isReadable(admin, 'connection');
  await admin.goto(`${origin}/connection.html?session=1&handle=1`);
  await expect(admin.getByTestId('status')).toContainText('It has ended');
  await admin.goto(`${origin}/events.html`);
  await expect(admin.getByTestId('status')).toHaveText('Watching.');
  await isFine(admin, 'events', info);
  await isReadable(admin, 'events');
  expect(wrong).toEqual([]);
});

test('a call on a phone', async ({ page }, info) => {
  await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8&simulcast=1`);
  await page.getByTestId('start').click();
  await expect(page.getByTestId('figure-bitrate-in')).not.toHaveText('–');
  await isFine(page, 'call', info, 'call');
  await isAccessible(page, 'call');
});
