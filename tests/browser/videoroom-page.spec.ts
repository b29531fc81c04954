// The video room page, driven as users do: several tabs in one room.
import { enter, expect, open, ROOMS, seen, streams, test, tile } from './room';

test('three publish and watch each other, one leaves, and nothing stays behind', async ({ context }) => {
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
