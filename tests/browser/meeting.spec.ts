// The room as somebody meets in it: the preview, the bar and its keys, who is muted or unseen, layouts, links and sub-paths.
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { isReference, startServer } from '../server/index.mjs';
import { FIREFOX } from './fixtures';
import { blankPage } from './in-page';
import { ask, enter, expect, ROOMS, seen, SECRET, streams, test, tile } from './room';

test.skip(isReference, 'the page needs additions of ours');

test('before joining one sees and hears oneself, and joins muted and unseen', async ({ context }) => {
  const ben = await enter(context, ROOMS.demo, 'Ben', 'source=none');
  const page = await context.newPage();
  await page.goto(`/videoroom.html?room=${ROOMS.demo}&name=Ann&size=320x180&simulcast=0`);
  const preview = page.getByTestId('preview');
  await expect.poll(() => preview.evaluate((video: HTMLVideoElement) => video.videoWidth)).toBe(320);
  // The fake microphone beeps each second.
  await expect.poll(() => page.getByTestId('preview-level').evaluate((meter: HTMLMeterElement) => meter.value)).toBeGreaterThan(0.1);
  await page.getByTestId('join-unseen').click();
  await expect.poll(() => preview.evaluate((video: HTMLVideoElement) => video.srcObject)).toBe(null);
  await page.getByTestId('join-muted').click();
  await page.getByTestId('join').click();
  for (const id of ['mute-audio', 'mute-video']) await expect(page.getByTestId(id)).toHaveAttribute('aria-pressed', 'true');
  await expect(tile(ben, 'Ann').getByRole('img', { name: 'muted' })).toBeVisible();
  await expect(tile(ben, 'Ann').getByTestId('no-picture')).toHaveText(/^ACamera off$/);
  await page.getByTestId('mute-video').click();
  await seen(ben, 'Ann');
});

test('keys do what the bar does, and the others see who is muted, unseen, and raises a hand', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await seen(ben, 'Ann');
  await ben.evaluate(() => {
    HTMLVideoElement.prototype.requestPictureInPicture = async function () {
      this.dataset['pip'] = 'on';
      throw new DOMException('It is not shown in tests.');
    };
  });
  await tile(ben, 'Ann').getByTestId('pip').click();
  await expect(tile(ben, 'Ann').getByTestId('video')).toHaveAttribute('data-pip', 'on');
  await ann.getByTestId('open-chat').click();
  for (const key of ['m', 'v', 'h']) await ann.keyboard.press(key);
  for (const id of ['mute-audio', 'mute-video', 'hand']) await expect(ann.getByTestId(id)).toHaveAttribute('aria-pressed', 'true');
  const shown = tile(ben, 'Ann');
  await expect(shown.getByRole('img', { name: 'muted' })).toBeVisible();
  await expect(shown.getByRole('img', { name: 'hand raised' })).toBeVisible();
  // No frozen frame.
  await expect(shown.getByTestId('no-picture')).toBeVisible();
  await expect(shown.getByTestId('video')).toBeHidden();
  await expect(ben.getByTestId('log')).toContainText('Ann raises a hand.');
  // Who comes later sees it, too.
  const cleo = await enter(context, ROOMS.demo, 'Cleo', 'source=none');
  await expect(tile(cleo, 'Ann').getByRole('img', { name: 'hand raised' })).toBeVisible();
  await expect(tile(cleo, 'Ann').getByTestId('no-picture')).toBeVisible();
  // Whoever opens the chat writes there, and no letter is a key meanwhile, wherever the focus is.
  await ann.keyboard.press('c');
  await expect(ann.getByTestId('text-input')).toBeFocused();
  await ann.keyboard.type('hm, mvs');
  await expect(ann.getByTestId('text-input')).toHaveValue('hm, mvs');
  await ann.getByTestId('hand').click();
  await ann.keyboard.type('mvs');
  for (const id of ['mute-audio', 'mute-video']) await expect(ann.getByTestId(id)).toHaveAttribute('aria-pressed', 'true');
  await expect(ann.getByTestId('screen')).toHaveAttribute('aria-pressed', 'false');
  await ann.getByTestId('text-input').press('Escape');
  await expect(ann.getByTestId('log')).toBeHidden();
  await ann.keyboard.press('v');
  await seen(ben, 'Ann');
  await ben.getByTestId('text-input').fill('Are you there?');
  await ben.getByTestId('text-send').click();
  await expect(ann.getByTestId('unread')).toHaveText('1');
  await ann.keyboard.press('c');
  await expect(ann.getByTestId('unread')).toHaveCount(0);
  await ann.getByTestId('text-input').press('Escape');
  // Who wants no keys has none, the next time, too.
  await ann.getByTestId('settings').click();
  await ann.getByTestId('keys').uncheck();
  await ann.getByTestId('settings').click();
  await ann.keyboard.press('v');
  await expect(ann.getByTestId('mute-video')).toHaveAttribute('aria-pressed', 'false');
  expect(await ann.evaluate(() => localStorage.getItem('portunus-keys'))).toBe('off');
});

test('a panel that is opened is in sight, and the whole room or one picture has the screen', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await seen(ann, 'Ben');
  await ann.setViewportSize({ width: 1280, height: 800 });
  for (const [button, shown] of [['settings', 'view'], ['open-people', 'people'], ['open-chat', 'text-input']] as const) {
    if (!(await ann.getByTestId(shown).isVisible())) await ann.getByTestId(button).click();
    await expect(ann.getByTestId(shown)).toBeInViewport();
  }
  await ann.getByTestId('text-input').press('Escape');
  await ann.bringToFront();
  const full = () => ann.evaluate(() => (document.fullscreenElement as HTMLElement | null)?.dataset['testid'] ?? document.fullscreenElement?.localName);
  await ann.getByTestId('fullscreen').click();
  await expect.poll(full).toBe('html');
  await expect(ann.getByTestId('fullscreen')).toHaveText(/Leave full screen/);
  await ann.keyboard.press('f');
  await expect.poll(full).toBe(undefined);
  await tile(ann, 'Ben').hover();
  await tile(ann, 'Ben').getByTestId('full').click();
  await expect.poll(full).toBe('tile-Ben');
  await tile(ann, 'Ben').getByTestId('full').click();
  await expect.poll(full).toBe(undefined);
  await ben.getByTestId('leave').click();
  await expect(ann.locator('#alone')).toContainText('Ben left: nobody else is here now.');
});

test('a link to a room that is gone says so at once, and the name is known the next time', FIREFOX, async ({ context }) => {
  const page = await context.newPage();
  await page.goto('/videoroom.html?room=987654');
  await expect(page.getByTestId('notice')).toContainText('There is no room 987654.');
  await page.getByTestId('make-room').click();
  await expect(page.getByTestId('new-description')).toBeFocused();
  await enter(context, ROOMS.demo, 'Ann', 'source=none');
  const later = await context.newPage();
  await later.goto('/audioroom.html');
  await expect(later.getByTestId('name')).toHaveValue('Ann');
});

test('a picture of which nothing comes any more is not left standing', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben', 'source=none');
  await seen(ben, 'Ann');
  // Her encoder hangs: she has not said so.
  await ann.evaluate(async () => {
    for (const connection of (window as any).peerConnections as RTCPeerConnection[]) {
      for (const sender of connection.getSenders()) if (sender.track?.kind === 'video') await sender.replaceTrack(null);
    }
  });
  await expect(tile(ben, 'Ann').getByTestId('no-picture')).toHaveText(/No picture comes/);
});

test('the pictures fill the window without a scroll bar, and with many the speaker is large', FIREFOX, async ({ context, server, clientScript }) => {
  const { room } = await ask(server, { request: 'create', publishers: 12, description: 'Many' });
  const viewer = await enter(context, room, 'Vera', 'source=synthetic&size=320x180&simulcast=0');
  const tiles = viewer.getByTestId('tiles');
  await expect(tiles).toHaveAttribute('data-view', 'grid');
  const fits = async () => {
    const area = (await tiles.boundingBox())!;
    const boxes = await viewer.getByTestId('tiles').locator('figure').evaluateAll((all) => all.filter((one) => !(one as HTMLElement).hidden).map((one) => one.getBoundingClientRect().toJSON()));
    for (const box of boxes) {
      expect(box.left).toBeGreaterThanOrEqual(area.x - 1);
      expect(box.right).toBeLessThanOrEqual(area.x + area.width + 1);
      expect(box.bottom).toBeLessThanOrEqual(area.y + area.height + 1);
    }
    const bar = (await viewer.getByRole('toolbar').boundingBox())!;
    expect(bar.y + bar.height).toBeLessThanOrEqual(viewer.viewportSize()!.height + 1);
    return boxes.length;
  };
  const crowd = await context.newPage();
  await blankPage(crowd, server, clientScript);
  const join = (number: number, tracks: string) =>
    crowd.evaluate(`(async () => {
      const one = await Client.open('${server.ws}', 'janus.plugin.videoroom');
      await one.ask({ request: 'join', ptype: 'publisher', room: ${room}, display: 'P${number}' });
      await one.negotiate(${tracks}, { request: 'publish' });
    })()`);
  await join(1, `[{ type: 'video', capture: 'lowres-16:9', recv: false }]`);
  await seen(viewer, 'P1');
  expect(await fits()).toBe(2);
  for (let number = 2; number <= 6; number += 1) await join(number, `[{ type: 'audio', capture: true, recv: false }]`);
  await expect(viewer.getByTestId('present')).toHaveText('7 here');
  await expect(tiles).toHaveAttribute('data-view', 'speaker');
  await expect(async () => expect(await fits()).toBe(7)).toPass({ timeout: 30_000 });
  await viewer.setViewportSize({ width: 360, height: 740 });
  // The pictures follow the window in a moment.
  await expect(async () => expect(await fits()).toBeGreaterThan(2)).toPass({ timeout: 30_000 });
  await expect(viewer.getByTestId('unseen')).toBeVisible();
  await viewer.getByTestId('open-chat').click();
  await viewer.keyboard.press('l');
  await expect(tiles).toHaveAttribute('data-view', 'grid');
});

test('who else gets what is said is seen in the lobby and the room: recordings, and other programs', async ({ context, server }, info) => {
  const { room } = await ask(server, { request: 'create', description: 'Recorded', secret: SECRET, rec_dir: info.outputPath('recordings') });
  const ann = await enter(context, room, 'Ann', 'source=synthetic&size=320x180&simulcast=0');
  const ben = await enter(context, room, 'Ben', 'source=none');
  await expect(ben.getByTestId('recording')).toHaveCount(0);
  // Who may not record is led to what it takes.
  await ann.getByTestId('record').click();
  await ann.getByTestId('record-now').click();
  await expect(ann.getByTestId('notice')).toContainText('takes the secret of the room');
  await ann.getByTestId('secret').fill(SECRET);
  await ann.getByTestId('moderate').click();
  await ann.getByTestId('record').click();
  await expect(ann.getByTestId('notice')).toContainText('Record the room? Everybody is told.');
  await ann.getByTestId('record-now').click();
  await expect(ann.getByTestId('recording')).toBeVisible();
  await expect(ben.getByTestId('recording')).toBeVisible();
  await expect(ben.getByTestId('log')).toContainText('The room is recorded from now on.');
  await seen(ben, 'Ann');
  await expect(ben.getByTestId('forwarding')).toHaveCount(0);
  // The list renews itself.
  const lobby = await context.newPage();
  await lobby.goto('/videoroom.html');
  const state = lobby.getByTestId(`room-${room}`).getByTestId('state');
  await expect(state).toContainText('recorded');
  const { participants } = await ask(server, { request: 'listparticipants', room });
  const publisher = participants.find(({ display }: { display: string }) => display === 'Ann').id;
  await ask(server, { request: 'rtp_forward', room, secret: SECRET, publisher_id: publisher, host: '127.0.0.1', streams: [{ mid: '0', port: 9 }] });
  await expect(ben.getByTestId('forwarding')).toHaveText('Sent on to another program');
  await ann.getByTestId('record').click();
  await expect(ann.getByTestId('notice')).toContainText('Its files are in the folder of recordings');
  await expect(ben.getByTestId('log')).toContainText('The recording has ended.');
  await ann.getByTestId('record').click();
  await ann.getByTestId('record-now').click();
  await expect(state).toContainText('recorded · sent on to another program');
});

test('who finds no room makes one, and a room of the list is joined by one button', FIREFOX, async ({ page }) => {
  const server = await startServer({ workers: 1, config: '' });
  try {
    await page.goto(`${server.base}/videoroom.html?source=synthetic&size=320x180&simulcast=0`);
    await page.getByTestId('new-description').fill('First');
    await page.getByTestId('create-room').click();
    // It takes a name, which the browser asks for.
    await expect(page.getByTestId('name')).toBeFocused();
    await expect(page.getByTestId('rooms').locator('li')).toHaveCount(0);
    await page.getByTestId('name').fill('Ann');
    await page.getByTestId('create-room').click();
    await expect(page.getByTestId('room-title')).toHaveText('First');
    for (const id of ['mute-audio', 'mute-video', 'hand', 'record', 'open-chat', 'open-people', 'fullscreen', 'copy-link', 'leave']) await expect(page.getByTestId(id)).toBeVisible();
    for (const id of ['log', 'people']) await expect(page.getByTestId(id)).toBeHidden();
    await page.getByTestId('open-people').click();
    await expect(page.getByTestId('people')).toContainText('Ann (you)');
    // On a phone one panel at a time, and the rest in the one for the rest.
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByTestId('settings').click();
    await expect(page.getByTestId('people')).toBeHidden();
    for (const id of ['hand', 'record']) await expect(page.getByTestId(id)).toBeVisible();
    await page.getByTestId('leave').click();
    await page.getByTestId('rooms').getByTestId('join-room').click();
    await expect(page.getByTestId('room-title')).toHaveText('First');
  } finally {
    await page.goto('about:blank');
    await server.stop();
  }
});

test('a link leads into a room at once, in a frame without what leads elsewhere, and below any path of a proxy', async ({ page }) => {
  const server = await startServer({ workers: 1, config: '\n[[videoroom.room]]\nroom = 1\ndescription = "Below"\n', http: 'frame_ancestors = ["http://127.0.0.1:*"]' });
  // Hands all below /rtc/video/ on.
  const proxy = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith('/rtc/video/')) return void outgoing.writeHead(404).end();
    const onward = request(server.base + incoming.url.slice('/rtc/video'.length), { method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  proxy.on('upgrade', (incoming, socket, head) => {
    const { hostname, port } = new URL(server.base);
    const onward = connect(Number(port), hostname, () => {
      const lines = [`GET ${incoming.url?.slice('/rtc/video'.length)} HTTP/1.1`];
      for (let index = 0; index < incoming.rawHeaders.length; index += 2) lines.push(`${incoming.rawHeaders[index]}: ${incoming.rawHeaders[index + 1]}`);
      onward.write(`${lines.join('\r\n')}\r\n\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    for (const one of [onward, socket]) one.on('error', () => (onward.destroy(), socket.destroy()));
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const base = `http://127.0.0.1:${(proxy.address() as { port: number }).port}/rtc/video`;
  try {
    await page.goto(`${base}/`);
    await page.getByTestId('to-videoroom').click();
    await expect(page).toHaveURL(`${base}/videoroom.html`);
    await expect(page.getByTestId('room-1')).toContainText('Below');
    await page.getByRole('link', { name: 'Portunus' }).click();
    await expect(page).toHaveURL(`${base}/`);
    const socket = page.waitForEvent('websocket');
    await page.goto(`${base}/videoroom.html?room=1&name=Ann&join=1&embed=1&source=synthetic&size=320x180&simulcast=0`);
    await expect(page.getByTestId('room-title')).toHaveText('Below');
    expect(new URL((await socket).url()).pathname).toMatch(/^\/rtc\/video\//);
    await expect.poll(async () => (await streams(page, 'outbound-rtp', 'video'))[0]?.framesEncoded ?? 0).toBeGreaterThan(5);
    await page.getByTestId('leave').click();
    await expect(page.getByTestId('lobby')).toBeVisible();
    await expect(page.getByRole('banner')).toBeHidden();
  } finally {
    await page.goto('about:blank');
    proxy.closeAllConnections();
    proxy.close();
    await server.stop();
  }
});
