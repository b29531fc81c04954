// The dashboard on the admin port, with real calls of the other pages.
import { createSocket } from 'node:dgram';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { canMakeNamespaces, makeNamespace } from '../server/namespace.mjs';
import { startPortunus } from '../server/portunus.mjs';
import type { Server } from '../server/portunus.mjs';
import { contrasts } from './contrast';
import { expect, FIREFOX, test } from './fixtures';
import { blankPage } from './in-page';
import { mediaFlows, rate } from './stats';

test.skip(isReference, 'the dashboard is ours');

const PHONE = { width: 360, height: 740 };
const CALL = '/echotest.html?codec=vp8&size=320x180&source=synthetic';

let server: Server;
let captures: string;

test.beforeAll(async () => {
  captures = mkdtempSync(join(tmpdir(), 'portunus-captures-'));
  server = await startPortunus({ workers: 2, config: `[admin]\ncapture_folder = ${JSON.stringify(captures)}\n` });
});

test.afterAll(async () => {
  await server?.stop();
  rmSync(captures, { recursive: true, force: true });
});

/** An address of the dashboard. */
const dashboard = (path = '', of = server) => `${new URL(of.admin).origin}/${path}`;

/** A page with a call whose media flow both ways. */
async function calling(page: Page, base = server.base): Promise<void> {
  await page.goto(base + CALL);
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
}

/** Opens the handle of the only call there is, by way of the overview. */
async function openHandle(page: Page, search: string, of = server): Promise<void> {
  await page.goto(dashboard('', of));
  await page.getByTestId('search').fill(search);
  // The session of a page that was closed before outlives it for 45 s.
  const handle = page.getByTestId('sessions').getByRole('link');
  await expect(handle).toHaveCount(1, { timeout: 60_000 });
  await handle.click();
  await expect(page.getByTestId('status')).toContainText('DTLS connected');
}

/** What is told to be wrong, but for a machine that is busy with other tests. */
const troubles = (page: Page) => page.getByTestId('diagnosis').locator('li:not([data-testid^="cause-worker"])');

const points = async (page: Page, plot: string) => {
  const path = (await page.getByTestId(plot).locator('.line').getAttribute('d')) ?? '';
  return (path.match(/[ML]/g) ?? []).length;
};

async function admin(of: Server, message: object): Promise<any> {
  const body = JSON.stringify({ transaction: 't', ...message });
  return (await fetch(of.admin, { method: 'POST', body })).json();
}

test('the overview names a call and what the workers do, and ending its session there ends it', FIREFOX, async ({ page, context }) => {
  await calling(page);
  const watcher = await context.newPage();
  await watcher.goto(dashboard());
  await expect(watcher.getByTestId('status')).toContainText('Portunus');
  const sessions = watcher.getByTestId('sessions');
  await expect(sessions).toContainText('echotest');
  await expect(sessions).toContainText('connected');
  await expect(sessions).toContainText(/in [1-9]\d* kbit\/s/);
  await expect(sessions).toContainText('from 127.0.0.1');
  await expect(watcher.getByTestId('count-peerconnections')).toHaveText('1');
  await expect(watcher.getByTestId('workers').locator('tbody tr')).toHaveCount(2);
  await expect.poll(() => points(watcher, 'plot-bits-in')).toBeGreaterThan(2);
  await expect(watcher.getByTestId('bits-in')).toContainText(/[1-9]\d* kbit\/s|Mbit\/s/);

  await watcher.getByTestId('search').fill('no such session');
  await expect(watcher.getByTestId('no-sessions')).toHaveText('None of them fits the search.');
  await watcher.getByTestId('search').fill('127.0.0.1');
  await watcher.getByTestId('sort').selectOption('bitrate');
  await expect(sessions).toContainText('echotest');

  await sessions.getByRole('link').click();
  await expect(watcher.getByTestId('title')).toHaveText(/^echotest/);
  await watcher.getByTestId('end').click();
  await watcher.getByTestId('confirm-no').click();
  await expect(watcher.getByTestId('confirm')).toBeHidden();
  await expect(watcher.getByTestId('status')).toContainText('connected');
  await watcher.getByTestId('end').click();
  await watcher.getByTestId('confirm-yes').click();
  await expect(watcher.getByTestId('status')).toContainText('It has ended');
  await expect(watcher.getByTestId('end')).toBeDisabled();
  // The client is not told, and gets nothing any more.
  await expect.poll(() => rate(page, 'inbound-rtp', 'video', 'packetsReceived')).toBe(0);
  await watcher.goto(dashboard());
  await expect(watcher.getByTestId('count-peerconnections')).toHaveText('0');
});

test('the page of a PeerConnection plots it, shows its streams, and says what is wrong', FIREFOX, async ({ page, context }) => {
  await calling(page);
  const watcher = await context.newPage();
  await openHandle(watcher, 'echotest');
  for (const plot of ['plot-bitrate-in', 'plot-bitrate-out']) {
    await expect.poll(() => points(watcher, plot), { message: plot }).toBeGreaterThan(2);
    const before = await points(watcher, plot);
    await expect.poll(() => points(watcher, plot), { message: plot }).toBeGreaterThan(before);
  }
  await expect(watcher.getByTestId('figure-bitrate-in')).toHaveText(/^[1-9]\d* kbit\/s$|Mbit\/s$/);
  await expect(watcher.getByTestId('figure-round-trip')).toContainText('ms');
  const streams = watcher.getByTestId('streams');
  await expect(streams).toContainText('vp8');
  await expect(streams).toContainText('opus');
  await expect(streams.locator('tbody tr').first()).toContainText('from the client');
  await expect(watcher.getByTestId('pairs')).toContainText('succeeded, in use');
  await expect(watcher.getByTestId('facts')).toContainText('SRTP');
  await watcher.getByTestId('remote-open').locator('summary').click();
  await expect(watcher.getByTestId('remote-sdp')).toContainText('m=video');
  await expect(troubles(watcher)).toHaveCount(0);

  // What the echo test sends back stops.
  await page.getByTestId('mute-video').click();
  await expect(watcher.getByTestId('cause-no-media-to-client')).toContainText('Nothing of video');
  await page.getByTestId('mute-video').click();
  await expect(troubles(watcher)).toHaveCount(0);

  await watcher.getByTestId('hangup').click();
  await watcher.getByTestId('confirm-yes').click();
  await expect(page.getByTestId('status')).toHaveText('Ready.');
  await expect(watcher.getByTestId('status')).toContainText('No PeerConnection');
});

test('the packets of a PeerConnection are captured into a file that the page names', FIREFOX, async ({ page, context }) => {
  await calling(page);
  const watcher = await context.newPage();
  await openHandle(watcher, 'echotest');
  await watcher.getByTestId('capture').click();
  await expect(watcher.getByTestId('capture')).toHaveText('Stop capturing');
  const told = (await watcher.getByTestId('capture-file').textContent()) ?? '';
  const file = told.match(/\S*\.pcap/)?.[0] ?? '';
  expect(file, told).toContain(captures);
  await expect.poll(() => existsSync(file)).toBe(true);
  await watcher.getByTestId('capture').click();
  await expect(watcher.getByTestId('capture')).toHaveText('Capture its packets');
  await expect(watcher.getByTestId('capture-file')).toContainText(file);
});

test('events appear as they come, and are filtered and held', FIREFOX, async ({ page, context }) => {
  const watcher = await context.newPage();
  await watcher.goto(dashboard('events.html'));
  await expect(watcher.getByTestId('status')).toHaveText('Watching.');
  await calling(page);
  const events = watcher.getByTestId('event');
  await expect(events.filter({ hasText: 'attached janus.plugin.echotest' })).toHaveCount(1);
  await expect(events.filter({ hasText: 'created janus.transport.websockets' })).toHaveCount(1);
  await expect(events.filter({ hasText: 'packets-received' })).toHaveCount(0);
  await watcher.getByTestId('noise').check();
  for (const figures of ['packets-received', 'status update']) await expect(events.filter({ hasText: figures })).not.toHaveCount(0);
  await watcher.getByTestId('noise').uncheck();
  for (const figures of ['packets-received', 'status update']) await expect(events.filter({ hasText: figures })).toHaveCount(0);

  // One kind alone; those that came before are shown by it too.
  for (const kind of await watcher.getByTestId('kinds').getByRole('checkbox').all()) await kind.uncheck();
  await expect(events).toHaveCount(0);
  await watcher.getByTestId('kind-handles').check();
  await expect(events).toHaveCount(1);
  await events.first().locator('summary').click();
  await expect(events.first().locator('pre')).toContainText('"name": "attached"');
  await watcher.getByTestId('session').fill('1');
  await expect(watcher.getByTestId('none')).toHaveText('None of those that came fits.');
  await watcher.getByTestId('session').fill('');
  await watcher.getByTestId('plugin').selectOption('janus.plugin.echotest');
  await expect(events).toHaveCount(1);

  await watcher.getByTestId('pause').click();
  await page.reload();
  await expect(watcher.getByTestId('count')).toContainText('have come meanwhile');
  await expect(events).toHaveCount(1);
  await watcher.getByTestId('pause').click();
  await expect(events.filter({ hasText: 'detached' })).toHaveCount(1);

  await events.first().locator('summary').click();
  await events.first().getByRole('link').click();
  await expect(watcher).toHaveURL(/connection\.html/);
});

test('the log level and whether there may be new sessions are changed', FIREFOX, async ({ page }) => {
  await page.goto(dashboard());
  await expect(page.getByTestId('log-level')).toBeEnabled();
  const before = await page.getByTestId('log-level').inputValue();
  await page.getByTestId('log-level').selectOption('5');
  await expect.poll(async () => (await admin(server, { janus: 'get_status' })).status.log_level).toBe(5);
  await page.reload();
  await expect(page.getByTestId('log-level')).toHaveValue('5');
  await page.getByTestId('log-level').selectOption(before);

  const create = async () => {
    const body = JSON.stringify({ janus: 'create', transaction: 't' });
    const { error } = (await (await fetch(server.http, { method: 'POST', body })).json()) as { error?: { code: number } };
    return error?.code;
  };
  await page.getByTestId('accept').uncheck();
  await expect.poll(create).toBe(472);
  await page.getByTestId('accept').check();
  await expect.poll(create).toBe(undefined);
});

test('rooms and mountpoints are listed, and a plugin that is turned off is said to be', async ({ page }) => {
  const other = await startPortunus({
    workers: 1,
    config: `[[videoroom.room]]\nroom = 77\ndescription = "Council"\n\n[[audiobridge.room]]\nroom = 78\ndescription = "Stand-up"\nsampling_rate = 16000\n\n[[textroom.room]]\nroom = 79\ndescription = "Notes"\n\n[plugins.streaming]\nenabled = false\n`,
  });
  try {
    await page.goto(dashboard('', other));
    await expect(page.getByTestId('rooms')).toContainText('Council (77)');
    await expect(page.getByTestId('audio-rooms')).toContainText('Stand-up (78)');
    await expect(page.getByTestId('audio-rooms')).toContainText('16 kHz');
    await expect(page.getByTestId('text-rooms')).toContainText('Notes (79)');
    await expect(page.getByTestId('no-mountpoints')).toHaveText('The plugin is turned off.');
    await expect(page.getByTestId('no-trouble')).toContainText('are 0');
    await expect(page.getByTestId('no-handlers')).toBeVisible();
  } finally {
    await other.stop();
  }
});

test('sessions name rooms and people, rooms open to who is in them, and what is wrong comes first', FIREFOX, async ({ page, context, browserName }) => {
  const port = 18_910;
  const media = `[[streaming.mountpoint.media]]\ntype = "video"\nmid = "v"\nport = ${port}\npt = 96\ncodec = "vp8"\n`;
  const other = await startPortunus({
    workers: 1,
    config: `[[videoroom.room]]\nroom = 77\ndescription = "Council"\n\n[[streaming.mountpoint]]\nid = 5\nname = "cam"\ntype = "rtp"\n${media}`,
  });
  try {
    const ann = await context.newPage();
    await ann.goto(`${other.base}/videoroom.html?room=77&name=Ann&source=none`);
    await ann.getByTestId('join').click();
    await expect(ann.getByTestId('room-title')).toHaveText('Council');
    // As on a server where much is wrong, which a test cannot bring about.
    const wrong = [
      ['portunus_recording_disk_free_bytes', 4.1e9],
      ['portunus_recordings_started_total', 3],
      ['portunus_certificate_expiry_timestamp_seconds', Date.now() / 1000 + 3 * 86_400 + 60, 'use="tls"'],
      ['portunus_broker_connected', 0, 'broker="mqtt"'],
      ['portunus_sip_unregistered_trunks', 1],
      ['process_open_fds', 900],
      ['process_max_fds', 1000],
    ].map(([name, value, labels]) => ({ name, value, labels }));
    let more = 0;
    // Firefox does not tell what is posted.
    const canChange = browserName === 'chromium';
    if (canChange) await page.route('**/admin', async (route) => {
      const asked = route.request().postDataJSON();
      if (asked.janus !== 'metrics') return route.fallback();
      const answer = await (await route.fetch()).json();
      expect(answer.metrics.map(({ name }: { name: string }) => name)).toContain('process_open_fds');
      const lost = { name: 'portunus_broker_lost_messages_total', labels: 'broker="mqtt"', value: (more += 2) };
      await route.fulfill({ json: { ...answer, metrics: more > 2 ? [...wrong, lost] : [lost] } });
    });
    await page.goto(dashboard('', other));
    await expect(page.getByTestId('all-well')).toBeVisible();
    await expect(page.getByTestId('sessions')).toContainText('room 77 · Ann');
    // The hour is the server's: it was there before the page.
    await expect.poll(() => points(page, 'plot-hour-peer-connections')).toBeGreaterThan(0);
    await expect(page.getByTestId('hour-core-share')).toHaveText(/^at most \d/);
    await page.getByTestId('room-77').locator('summary').click();
    await expect(page.getByTestId('room-people')).toContainText('Ann');
    await expect(page.getByTestId('mountpoints')).toContainText('nothing has come so far');
    // One packet of RTP, and silence.
    const socket = createSocket('udp4');
    socket.send(Buffer.from([0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0x10, 0, 0, 0]), port, '127.0.0.1');
    await expect(page.getByTestId('wrong')).toContainText(/Mountpoint cam \(5\): silent for/);
    socket.close();
    if (canChange) for (const text of [
      'Only 4.10 GB are free on the disk of recordings',
      'The certificate of [tls] expires in 3 d',
      'The broker of [mqtt] is away, and tried again',
      'SIP registrars: a trunk is not registered',
      '90.0 % of the files that the server may open are open',
      'In the last minute: 2 messages that a broker has not taken',
    ]) await expect(page.getByTestId('wrong')).toContainText(text);
  } finally {
    await other.stop();
  }
});

test('the secret is asked for, and kept in the tab alone', FIREFOX, async ({ page, context }) => {
  const closed = await startPortunus({ workers: 1, config: `[admin]\nsecret = "s3cret & more"\n` });
  try {
    for (const path of ['', 'events.html', 'connection.html?session=1&handle=1']) {
      const tab = await context.newPage();
      await tab.goto(dashboard(path, closed));
      await expect(tab.getByTestId('secret-form')).toHaveCount(1);
      await expect(tab.getByTestId('secret-why')).toContainText('asks for its admin secret');
      await tab.getByTestId('secret').fill('guess');
      await tab.getByTestId('secret-open').click();
      await expect(tab.getByTestId('secret-why')).toHaveText('That is not the secret.');
      await tab.getByTestId('secret').fill('s3cret & more');
      await tab.getByTestId('secret-open').click();
      await expect(tab.getByTestId('secret-form')).toHaveCount(0);
      await expect(path ? tab.getByTestId('status') : tab.getByTestId('uptime')).toHaveText(path ? /Watching|ended/ : /\d s/);
      await tab.close();
    }
    await page.goto(dashboard('', closed));
    await page.getByTestId('secret').fill('s3cret & more');
    await page.getByTestId('secret-open').click();
    await expect(page.getByTestId('uptime')).toContainText(' s');
    await page.reload();
    await expect(page.getByTestId('uptime')).toContainText(' s');
    expect(await page.evaluate(() => [localStorage.length, document.cookie, sessionStorage.length])).toEqual([0, '', 1]);
  } finally {
    await closed.stop();
  }
});

test('a server without a secret, which trusts nobody without one, is not asked to take one', async ({ page }) => {
  const shut = await startPortunus({ workers: 1, config: '[server]\ntrust_loopback = false\n' });
  try {
    for (const path of ['', 'events.html']) {
      await page.goto(dashboard(path, shut));
      await expect(page.getByTestId('notice')).toContainText('without admin.secret');
      await expect(page.getByTestId('secret-form')).toHaveCount(0);
    }
    expect(shut.log()).toContain('server.trust_loopback: nobody may use the Admin API and the dashboard: set admin.secret');
  } finally {
    await shut.stop();
  }
});

test('a tab that is not seen asks for nothing', FIREFOX, async ({ page }) => {
  let asked = 0;
  page.on('request', (request) => (asked += request.method() === 'POST' ? 1 : 0));
  await page.goto(dashboard());
  await expect.poll(() => asked).toBeGreaterThan(6);
  const see = (seen: boolean) =>
    page.evaluate((seen) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: !seen });
      document.dispatchEvent(new Event('visibilitychange'));
    }, seen);
  await see(false);
  // What was under way is done.
  await page.waitForLoadState('networkidle');
  const before = asked;
  await page.evaluate(() => new Promise((done) => setTimeout(done, 4500)));
  expect(asked).toBe(before);
  await see(true);
  await expect.poll(() => asked).toBeGreaterThan(before);
});

test('a server that is away is reported, and asked again', async ({ page }) => {
  const short = await startPortunus({ workers: 1 });
  try {
    await page.goto(dashboard('', short));
    await expect(page.getByTestId('uptime')).toContainText(' s');
  } finally {
    await short.stop();
  }
  await expect(page.getByTestId('notice')).toContainText('cannot be reached');
});

// In Chromium page-checks.spec.ts looks at both schemes.
test('the pages fit a phone and have enough contrast', FIREFOX, async ({ page: caller, pageIn, browserName }, info) => {
  test.skip(browserName === 'chromium', 'page-checks.spec.ts looks at it');
  await calling(caller);
  const page = await pageIn('light');
  await page.setViewportSize(PHONE);
  const errors: string[] = [];
  // For a screenshot Playwright adds a style of its own, which the pages' policy refuses in Firefox.
  const own = (text: string) => text.includes('blocked an inline style (style-src-elem)');
  page.on('pageerror', (error) => own(String(error)) || errors.push(String(error)));
  await page.goto(dashboard());
  await page.getByTestId('sessions').getByRole('link').first().click();
  await expect.poll(() => points(page, 'plot-bitrate-in')).toBeGreaterThan(2);
  const handle = page.url();
  for (const url of [dashboard(), handle, dashboard('events.html')]) {
    await page.goto(url);
    await expect(page.getByTestId('status')).toHaveText(/Portunus|connected|Watching/);
    if (url === handle) await expect(page.getByTestId('pairs').locator('tbody tr')).not.toHaveCount(0);
    for (const summary of await page.locator('summary').all()) await summary.click();
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    const name = new URL(url).pathname.replace(/\W/g, '') || 'index';
    await page.screenshot({ path: info.outputPath(`${name}.png`), fullPage: true });
    const { seen, poor } = await contrasts(page);
    expect(poor, url).toEqual([]);
    expect(seen, url).toBeGreaterThan(15);
    for (const button of await page.getByRole('button').all()) {
      if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    }
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLInputElement>('input, select, button')]
        .filter((control) => !control.labels?.length && !control.ariaLabel && !control.textContent?.trim())
        .map((control) => control.outerHTML),
    );
    expect(nameless).toEqual([]);
  }
  expect(errors).toEqual([]);
});

test.describe('behind a bad link', () => {
  test.skip(!canMakeNamespaces(), 'it needs root and network namespaces');
  test.setTimeout(240_000);

  test('losses are told by their way', async ({ launchOptions, page }) => {
    const namespace = makeNamespace();
    const lossy = await startPortunus({ workers: 1, config: 'bandwidth_adaptation = false' });
    const inside = await chromium.launch({ ...launchOptions, executablePath: namespace.wrap(launchOptions.executablePath ?? 'chromium') });
    try {
      const caller = await inside.newPage();
      await caller.goto(`${await namespace.reach(lossy.base)}/echotest.html?source=synthetic&codec=vp8&size=640x360&transport=http`);
      await caller.getByTestId('start').click();
      await openHandle(page, 'echotest', lossy);
      namespace.lose('in', 60);
      await expect(page.getByTestId('cause-loss-to-client')).toContainText('of the packets to the client were lost', { timeout: 60_000 });
      await expect(page.getByTestId('cause-loss-from-client')).toHaveCount(0);
      await expect.poll(() => points(page, 'plot-loss-out')).toBeGreaterThan(5);
      namespace.lose('in', 50_000);
      await expect(page.getByTestId('cause-loss-to-client')).toHaveCount(0, { timeout: 60_000 });
      namespace.lose('out', 60);
      await expect(page.getByTestId('cause-loss-from-client')).toContainText(/of the client.s packets were lost/, { timeout: 60_000 });
    } finally {
      await inside.close();
      await lossy.stop();
      namespace.remove();
    }
  });

  test('a narrow link is named as what holds the picture down', async ({ launchOptions, page, context, clientScript }) => {
    const namespace = makeNamespace();
    const ROOM = `[[videoroom.room]]\nroom = 1\nvideocodec = "vp8"\nbitrate = 3000000\n`;
    const narrow = await startPortunus({ workers: 2, config: ROOM });
    const inside = await chromium.launch({ ...launchOptions, executablePath: namespace.wrap(launchOptions.executablePath ?? 'chromium') });
    try {
      namespace.limit(20_000);
      const publisher = await context.newPage();
      await blankPage(publisher, narrow, clientScript);
      const feed = await publisher.evaluate(
        `(async () => {
          window.one = await Client.open('${narrow.ws}', 'janus.plugin.videoroom');
          const { id } = (await one.ask({ request: 'join', ptype: 'publisher', room: 1 })).data;
          await one.negotiate([{ type: 'video', capture: { width: 1280, height: 720 }, recv: false, simulcast: true }], { request: 'publish' });
          return id;
        })()`,
      );
      const viewer = await inside.newPage();
      await blankPage(viewer, { ...narrow, base: await namespace.reach(narrow.base) }, clientScript);
      const handle = await viewer.evaluate(
        `(async () => {
          window.viewer = await Client.open('${await namespace.reach(narrow.ws)}', 'janus.plugin.videoroom');
          await viewer.subscribe({ request: 'join', ptype: 'subscriber', room: 1, streams: [{ feed: ${feed}, mid: '0' }] });
          return [viewer.janus.getSessionId(), viewer.handle.getId()];
        })()`,
      );
      const [session, id] = handle as [number, number];
      await page.goto(dashboard(`connection.html?session=${session}&handle=${id}`, narrow));
      await expect.poll(() => page.getByTestId('figure-substream').textContent(), { timeout: 60_000 }).toBe('2');
      namespace.limit(250);
      await expect(page.getByTestId('cause-estimate-low')).toContainText('The link to the client carries about', { timeout: 60_000 });
      await expect.poll(async () => Number(await page.getByTestId('figure-substream').textContent()), { timeout: 30_000 }).toBeLessThan(2);
      await expect.poll(() => points(page, 'plot-estimate')).toBeGreaterThan(2);
      namespace.limit(20_000);
      await expect(page.getByTestId('cause-estimate-low')).toHaveCount(0, { timeout: 60_000 });
    } finally {
      await inside.close();
      await narrow.stop();
      namespace.remove();
    }
  });
});
