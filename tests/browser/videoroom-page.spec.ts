// The video room page, driven as users do: several tabs in one room.
import type { Page } from '@playwright/test';
import { FIREFOX } from './fixtures';
import { ask, enter, expect, growth, open, PIN, ROOMS, SECRET, seen, streams, test, tile, widthOf } from './room';

test('three publish and watch each other, one leaves, and nothing stays behind', FIREFOX, async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  const cleo = await enter(context, ROOMS.demo, 'Cleo');
  for (const [page, others] of [[ann, ['Ben', 'Cleo']], [ben, ['Ann', 'Cleo']], [cleo, ['Ann', 'Ben']]] as const) {
    for (const other of others) await seen(page, other);
    // One PeerConnection sends, one receives, however many there are.
    expect(await open(page)).toBe(2);
    await expect.poll(async () => (await streams(page, 'inbound-rtp', 'audio')).filter((one) => one.packetsReceived > 20).length).toBe(2);
  }
  await expect(tile(ann, 'Ben').getByTestId('figures')).toContainText('VP8 · 320×180');
  await expect(tile(ann, 'Ben').getByTestId('figures')).toContainText('bit/s');

  await cleo.getByTestId('leave').click();
  await expect(cleo.getByTestId('lobby')).toBeVisible();
  await expect.poll(() => open(cleo)).toBe(0);
  await expect(cleo.getByTestId('video')).toHaveCount(0);
  for (const [page, other] of [[ann, 'Ben'], [ben, 'Ann']] as const) {
    await expect(tile(page, 'Cleo')).toHaveCount(0);
    await expect(page.getByTestId('log')).toContainText('Cleo left.');
    await seen(page, other);
  }
  // She comes back on the same page.
  await cleo.getByTestId('join').click();
  await seen(cleo, 'Ann');
  await seen(ann, 'Cleo');
  expect(await open(cleo)).toBe(2);
});

test('screen and camera together, and the screen ends', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await seen(ben, 'Ann');
  await ann.getByTestId('screen').click();
  await expect(tile(ann, 'Your screen')).toBeVisible();
  await seen(ben, 'Ann: Screen');
  await seen(ben, 'Ann');
  await ann.getByTestId('screen').click();
  await expect(tile(ben, 'Ann: Screen')).toHaveCount(0);
  await seen(ben, 'Ann');
  // A second time takes the m-line that has become free.
  await ann.getByTestId('screen').click();
  await seen(ben, 'Ann: Screen');
  const sections = await ben.evaluate(() => ((window as any).peerConnections as RTCPeerConnection[]).map((one) => one.getTransceivers().length));
  expect(Math.max(...sections)).toBe(3);
});

test('a room is made, found by its link, opened by its PIN, and moderated', async ({ context }) => {
  const ann = await context.newPage();
  await ann.goto('/videoroom.html?name=Ann&size=320x180&simulcast=0&panels=people,chat');
  await ann.getByTestId('create-open').click();
  await ann.getByTestId('new-description').fill('Planning');
  await ann.getByTestId('new-pin').fill(PIN);
  await ann.getByTestId('create-more').click();
  await ann.getByTestId('new-secret').fill(SECRET);
  await ann.getByTestId('create-room').click();
  await expect(ann.getByTestId('room-title')).toHaveText('Planning');
  await ann.getByTestId('copy-link').click();
  const link = await ann.getByTestId('link').inputValue();
  expect(link).not.toContain(PIN);

  const ben = await context.newPage();
  await ben.goto(`${link}&name=Ben&size=320x180&simulcast=0&panels=people,chat`);
  // The list says that it takes a PIN.
  await ben.getByTestId('pin').fill('0000');
  await ben.getByTestId('join').click();
  await expect(ben.getByTestId('notice')).toContainText('not the PIN');
  await ben.getByTestId('pin').fill(PIN);
  await ben.getByTestId('join').click();
  await seen(ann, 'Ben');
  await seen(ben, 'Ann');

  await ben.getByTestId('moderate-open').click();
  await ben.getByTestId('secret').fill('guess');
  await ben.getByTestId('moderate').click();
  await expect(ben.getByTestId('notice')).toContainText('not the secret');
  await expect(ben.getByTestId('kick')).toHaveCount(0);

  // Who made the room knows its secret already.
  const row = ann.getByTestId('person-Ben');
  await row.getByTestId('moderate-audio').click();
  await expect(ben.getByTestId('notice')).toContainText('A moderator has muted');
  await expect(row.getByTestId('doing')).toContainText('muted by a moderator');
  const heard = async () => (await streams(ann, 'inbound-rtp', 'audio'))[0].packetsReceived as number;
  await expect.poll(() => growth(heard)).toBe(0);
  await seen(ann, 'Ben');
  const before = await heard();
  await row.getByTestId('moderate-audio').click();
  await expect(ben.getByTestId('notice')).toContainText('lets the others');
  await expect.poll(heard).toBeGreaterThan(before + 10);

  await row.getByTestId('kick').click();
  await expect(ben.getByTestId('lobby')).toBeVisible();
  await expect(ben.getByTestId('notice')).toContainText('removed you');
  await expect.poll(() => open(ben)).toBe(0);
  await expect(tile(ann, 'Ben')).toHaveCount(0);
  await expect(ann.getByTestId('log')).toContainText('Ben was removed.');
  expect(await open(ann)).toBe(2);
});

test('sound and picture are muted and come back, and another microphone takes over', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben', 'source=none');
  await seen(ben, 'Ann');
  const heard = async () => (await streams(ben, 'inbound-rtp', 'audio'))[0].packetsReceived as number;
  const flows = async () => {
    const before = await heard();
    await expect.poll(heard).toBeGreaterThan(before + 10);
  };
  await flows();
  await ann.getByTestId('mute-audio').click();
  await expect(ann.getByTestId('mute-audio')).toHaveAttribute('aria-pressed', 'true');
  await expect.poll(() => growth(heard)).toBe(0);
  await ann.getByTestId('mute-audio').click();
  await flows();

  await ann.getByTestId('mute-video').click();
  const frames = async () => (await streams(ben, 'inbound-rtp', 'video'))[0].framesDecoded as number;
  await expect.poll(() => growth(frames)).toBe(0);
  await ann.getByTestId('mute-video').click();
  await seen(ben, 'Ann');

  await ann.getByTestId('settings').click();
  const microphone = ann.getByTestId('microphone');
  const others = await microphone.locator('option').evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value).filter(Boolean));
  await microphone.selectOption(others.at(-1) ?? '');
  await flows();
  const label = () => ann.evaluate(() => (window as any).peerConnections.flatMap((one: RTCPeerConnection) => one.getSenders()).find((one: RTCRtpSender) => one.track?.kind === 'audio')?.track.label);
  const chosen = await microphone.locator('option:checked').textContent();
  await expect.poll(label).toBe(chosen);
  await expect(ann.getByTestId('notice')).toBeHidden();
});

/** Breaks all connections of a page, as far as the server can tell. */
function breakAll(page: Page): Promise<void> {
  return page.evaluate(() => ((window as any).peerConnections as RTCPeerConnection[]).forEach((one) => one.close()));
}

/** The packets of sound that a page has got, of all connections. */
async function sounds(page: Page): Promise<number> {
  return (await streams(page, 'inbound-rtp', 'audio')).reduce((sum, one) => sum + (one.packetsReceived as number), 0);
}

test('lost connections are made anew by themselves, and what is muted stays muted', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await seen(ann, 'Ben');
  await seen(ben, 'Ann');
  await ann.getByTestId('mute-audio').click();
  await expect.poll(() => growth(() => sounds(ben))).toBe(0);

  for (const round of ['first', 'second']) {
    const made = () => ann.evaluate(() => (window as any).peerConnections.length as number);
    const before = await made();
    await breakAll(ann);
    await expect.poll(made, { message: round }).toBe(before + 2);
    await seen(ben, 'Ann');
    await seen(ann, 'Ben');
    expect(await open(ann)).toBe(2);
    await expect(ann.getByTestId('mute-audio')).toHaveAttribute('aria-pressed', 'true');
    await expect(ann.getByTestId('mute-video')).toHaveAttribute('aria-pressed', 'false');
    await expect.poll(() => growth(() => sounds(ben))).toBe(0);
    await expect(tile(ben, 'Ann').getByRole('img', { name: 'muted' })).toBeVisible();
  }
  const before = await sounds(ben);
  await ann.getByTestId('mute-audio').click();
  await expect.poll(() => sounds(ben)).toBeGreaterThan(before + 10);

  // Who leaves and comes back begins anew.
  await ann.getByTestId('mute-video').click();
  await ann.getByTestId('leave').click();
  await ann.getByTestId('join').click();
  await seen(ben, 'Ann');
  await expect(ann.getByTestId('mute-video')).toHaveAttribute('aria-pressed', 'false');
});

for (const [kind, said] of [['audio', 'The microphone is gone'], ['video', 'The camera is gone']] as const) {
  test(`${said.toLowerCase()}: that is told, and another takes its place`, async ({ context }) => {
    const ann = await enter(context, ROOMS.demo, 'Ann');
    const ben = await enter(context, ROOMS.demo, 'Ben', 'source=none');
    await seen(ben, 'Ann');
    /** What is sent of this kind. */
    const track = (vanishes: boolean) =>
      ann.evaluate(
        ([kind, vanishes]) => {
          const senders = ((window as any).peerConnections as RTCPeerConnection[]).flatMap((one) => one.getSenders());
          const track = senders.find((one) => one.track?.kind === kind)?.track;
          if (vanishes) {
            track?.stop();
            track?.dispatchEvent(new Event('ended'));
          }
          return track?.id;
        },
        [kind, vanishes] as const,
      );
    const gone = await track(true);
    const notice = ann.getByTestId('notice');
    await expect(notice).toContainText(said);
    await ann.getByTestId('another').click();
    await expect(notice).toBeHidden();
    await expect.poll(() => track(false)).not.toBe(gone);
    await seen(ben, 'Ann');
    const before = await sounds(ben);
    await expect.poll(() => sounds(ben)).toBeGreaterThan(before + 10);
    expect(await open(ann)).toBe(1);
  });
}

test('chat reaches everybody, also from those who only watch', FIREFOX, async ({ context }) => {
  // Who has just left the room in another test may still be shown, so the names are of this test.
  const eli = await enter(context, ROOMS.demo, 'Eli');
  const fay = await enter(context, ROOMS.demo, 'Fay', 'source=none');
  await seen(fay, 'Eli');
  await expect(eli.getByTestId('person-Fay')).toContainText('watching');
  expect(await open(fay)).toBe(1);
  await fay.getByTestId('text-input').fill('Can you hear me?');
  await fay.getByTestId('text-send').click();
  await expect(eli.getByTestId('log')).toContainText('Fay: Can you hear me?');
  await eli.getByTestId('text-input').fill('Grüße, Fay ✓');
  await eli.getByTestId('text-send').click();
  await expect(fay.getByTestId('log')).toContainText('Eli: Grüße, Fay ✓');
  // A connection that began with words takes a camera too.
  await fay.getByTestId('source').evaluate((select) => ((select as HTMLSelectElement).value = 'synthetic'));
  await fay.getByTestId('publish').click();
  await seen(eli, 'Fay');
});

test('in a full room one watches, and sends when there is a place', async ({ context }) => {
  const ann = await enter(context, ROOMS.small, 'Ann');
  await expect(ann.getByTestId('mute-audio')).toBeVisible();
  await expect.poll(async () => (await streams(ann, 'outbound-rtp', 'video')).length).toBe(1);
  const ben = await enter(context, ROOMS.small, 'Ben');
  await expect(ben.getByTestId('notice')).toContainText('As many people send');
  await seen(ben, 'Ann');
  expect(await open(ben)).toBe(1);
  // Closing the tab is enough to leave.
  await ann.close({ runBeforeUnload: true });
  await expect(ben.getByTestId('person-Ann')).toHaveCount(0);
  await ben.getByTestId('publish').click();
  await expect.poll(async () => (await streams(ben, 'outbound-rtp', 'video'))[0]?.framesEncoded ?? 0).toBeGreaterThan(5);
});

test('a room that is not there, and one that is closed', async ({ context, server }) => {
  const page = await context.newPage();
  await page.goto('/videoroom.html?room=424242&name=Ann&source=none');
  await page.getByTestId('join').click();
  await expect(page.getByTestId('notice')).toContainText('no such room');
  const { room } = await ask(server, { request: 'create', description: 'Short' });
  await page.getByTestId('room').fill(String(room));
  await page.getByTestId('join').click();
  await expect(page.getByTestId('room-title')).toHaveText('Short');
  await ask(server, { request: 'destroy', room });
  await expect(page.getByTestId('notice')).toContainText('The room was closed.');
  await expect(page.getByTestId('lobby')).toBeVisible();
});

test('simulcast: each viewer has the layer that it chooses, the others keep theirs', async ({ context }) => {
  await enter(context, ROOMS.layers, 'Ann', 'size=1280x720');
  const ben = await enter(context, ROOMS.layers, 'Ben', 'source=none');
  const cleo = await enter(context, ROOMS.layers, 'Cleo', 'source=none');
  for (const viewer of [ben, cleo]) await expect.poll(() => widthOf(viewer, 'Ann'), { timeout: 40_000 }).toBe(1280);
  for (const [layer, width] of [['0', 320], ['2', 1280], ['1', 640]] as const) {
    await tile(ben, 'Ann').getByTestId('layer-size').selectOption(layer);
    await expect.poll(() => widthOf(ben, 'Ann'), { message: `layer ${layer}`, timeout: 40_000 }).toBe(width);
    await expect(tile(ben, 'Ann').getByTestId('figures')).toContainText(`(${layer})`);
    await expect(tile(ben, 'Ann').getByTestId('figures')).toContainText(layer === '2' ? 'all that is sent' : 'as chosen');
    expect(await widthOf(cleo, 'Ann')).toBe(1280);
  }
  await seen(ben, 'Ann');
  await seen(cleo, 'Ann');
  // A page that nobody looks at asks for the smallest.
  const look = (looks: boolean) =>
    cleo.evaluate((looks) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: !looks });
      document.dispatchEvent(new Event('visibilitychange'));
    }, looks);
  await look(false);
  await expect.poll(() => widthOf(cleo, 'Ann')).toBe(320);
  await look(true);
  await expect.poll(() => widthOf(cleo, 'Ann'), { timeout: 40_000 }).toBe(1280);
});

for (const codec of ['vp9', 'av1'] as const) {
  test(`SVC with ${codec}: each viewer has the layer that it chooses`, async ({ context }) => {
    await enter(context, ROOMS.svc, 'Ann', `size=1280x720&codec=${codec}&svc=L3T3`);
    const ben = await enter(context, ROOMS.svc, 'Ben', 'source=none');
    await seen(ben, 'Ann');
    for (const [layer, width] of [['0', 320], ['2', 1280], ['1', 640]] as const) {
      await tile(ben, 'Ann').getByTestId('layer-size').selectOption(layer);
      await expect.poll(() => widthOf(ben, 'Ann'), { message: `layer ${layer}`, timeout: 40_000 }).toBe(width);
    }
    await expect(tile(ben, 'Ann').getByTestId('figures')).toContainText(codec.toUpperCase());
  });
}

test('a viewer follows who speaks, on one connection that is not negotiated anew', async ({ context }) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await ann.getByTestId('mute-audio').click();
  const viewer = await enter(context, ROOMS.demo, 'Vera', 'source=none&last=1');
  await seen(viewer, 'Ben');
  await expect(tile(viewer, 'Ann')).toHaveCount(0);
  const negotiations = () => viewer.evaluate(() => ((window as any).peerConnections as RTCPeerConnection[]).at(-1)?.remoteDescription?.sdp.match(/^o=\S+ \d+ (\d+)/m)?.[1]);
  const before = await negotiations();
  await ben.getByTestId('mute-audio').click();
  await ann.getByTestId('mute-audio').click();
  await seen(viewer, 'Ann');
  await expect(tile(viewer, 'Ben')).toHaveCount(0);
  expect(await negotiations()).toBe(before);
  await viewer.getByTestId('settings').click();
  await viewer.getByTestId('follow').selectOption('0');
  await seen(viewer, 'Ben');
  await seen(viewer, 'Ann');
  expect(await open(viewer)).toBe(1);
});

test('the large picture comes before the others', async ({ context }) => {
  /** The last priority that was asked for each m-line. */
  const priorities = new Map<string, string>();
  context.on('page', (page) =>
    page.on('websocket', (socket) =>
      socket.on('framesent', ({ payload }) => {
        const body = JSON.parse(String(payload)).body;
        if (body?.request !== 'configure') return;
        for (const { mid, priority } of body.streams ?? []) if (priority) priorities.set(mid, priority);
      }),
    ),
  );
  await enter(context, ROOMS.layers, 'Ann', 'size=640x360');
  await enter(context, ROOMS.layers, 'Ben', 'size=640x360');
  const cleo = await enter(context, ROOMS.layers, 'Cleo', 'source=none');
  await seen(cleo, 'Ann');
  await seen(cleo, 'Ben');
  const first = () => [...priorities].filter(([, priority]) => priority === 'high').map(([mid]) => mid);
  expect(first()).toEqual([]);
  await tile(cleo, 'Ann').getByTestId('enlarge').click();
  await expect(tile(cleo, 'Ann')).toHaveClass(/large/);
  await expect.poll(() => first().length).toBe(1);
  const [ann] = first();
  await tile(cleo, 'Ben').getByTestId('enlarge').click();
  await expect(tile(cleo, 'Ben')).toHaveClass(/large/);
  await expect.poll(() => first().length === 1 && first()[0] !== ann).toBe(true);
  expect(priorities.get(ann)).toBe('low');
});

test('the speaker is large, or who is wanted, and the room fits a phone', async ({ context }, info) => {
  const ann = await enter(context, ROOMS.demo, 'Ann');
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await ben.setViewportSize({ width: 360, height: 740 });
  await seen(ben, 'Ann');
  await ben.getByTestId('settings').click();
  await ben.getByTestId('view').click();
  await ben.getByTestId('settings').click();
  await expect(tile(ben, 'Ann')).toHaveClass(/large/);
  await tile(ben, 'You').getByTestId('enlarge').click();
  await expect(tile(ben, 'You')).toHaveClass(/large/);
  await expect(tile(ben, 'Ann')).not.toHaveClass(/large/);
  expect(await ben.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  for (const button of await ben.getByRole('button').all()) {
    if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
  const nameless = await ben.evaluate(() =>
    [...document.querySelectorAll<HTMLInputElement>('input, select, button, video')]
      .filter((control) => !control.labels?.length && !control.ariaLabel && !control.textContent?.trim())
      .map((control) => control.outerHTML),
  );
  expect(nameless).toEqual([]);
  await ben.screenshot({ path: info.outputPath('phone.png'), fullPage: true });
  await ann.screenshot({ path: info.outputPath('desk.png'), fullPage: true });
});
