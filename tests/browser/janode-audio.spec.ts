// Janode's module for the audio bridge with media: an application's server speaks to ours by Janode, its users' browsers talk.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import Janode from 'janode';
import AudioBridge from 'janode/plugins/audiobridge';
import { isReference } from '../server/index.mjs';
import { expect, test as base } from './audioroom';
import { FIREFOX } from './fixtures';
import { blankPage } from './in-page';
import { PEERS, withSession } from './peers';

const { EVENT } = AudioBridge;

const test = base.extend<{ session: Record<string, any> }, {}>({
  session: async ({ server }, use) => withSession(server, use),
});
test.skip(isReference, 'needs folders of its own');

/** How many packets of sound somebody in the page has received. */
const packets = (page: Page, name: string) =>
  page.evaluate(async (name) => {
    const report = [...(await (window as any).peers[name].getStats()).values()];
    return (report.find((one) => one.type === 'inbound-rtp')?.packetsReceived ?? 0) as number;
  }, name);

/** Waits until what happens to a handle is what is expected; `make` makes it happen. */
async function told(handle: any, event: string, expected: Record<string, unknown>, make: () => Promise<unknown>): Promise<void> {
  const coming = once(handle, event);
  await make();
  expect((await coming)[0]).toMatchObject(expected);
}

test('Janode: users talk, are told of each other, hear announcements, and are thrown out', FIREFOX, async ({ page, server, session, folder }) => {
  const file = join(folder, 'janode.opus');
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-f', 'lavfi', '-i', 'sine=frequency=600:sample_rate=48000:duration=1', '-c:a', 'libopus', file]);
  await blankPage(page, server, PEERS);
  const manager = await session.attach(AudioBridge);
  const { room } = await manager.create({ secret: 's', talking_events: true, talking_packets_threshold: 10, talking_level_threshold: 70 });
  const about = { room, secret: 's' };

  // One offers, the other is offered.
  const [ann, ben] = [await session.attach(AudioBridge), await session.attach(AudioBridge)];
  expect(await ann.join({ room, feed: 1, display: 'Ann' })).toMatchObject({ room, feed: 1, participants: [] });
  const comes = once(ann, EVENT.AUDIOBRIDGE_PEER_JOINED);
  const joined = await ben.join({ room, feed: 2, display: 'Ben', generate_offer: true });
  expect(joined.participants).toMatchObject([{ feed: 1, display: 'Ann', setup: false, muted: false }]);
  expect((await comes)[0]).toMatchObject({ feed: 2, display: 'Ben', setup: false });

  const [up, talks, peerTalks] = [once(ann, Janode.EVENT.HANDLE_WEBRTCUP), once(ann, EVENT.AUDIOBRIDGE_TALKING), once(ben, EVENT.AUDIOBRIDGE_PEER_TALKING)];
  const offer = await page.evaluate(`(async () => offer('ann', [await sound()], undefined, 'sendrecv'))()`);
  const { jsep } = await ann.configure({ muted: false, jsep: offer });
  await page.evaluate((answer) => (window as any).peers.ann.setRemoteDescription(answer), jsep);
  await up;
  expect((await talks)[0]).toMatchObject({ feed: 1, talking: true });
  expect((await peerTalks)[0]).toMatchObject({ feed: 1, talking: true });
  expect((await manager.listParticipants(about)).participants.find(({ feed }: any) => feed === 1)).toMatchObject({ setup: true });

  const [benUp, setUp] = [once(ben, Janode.EVENT.HANDLE_WEBRTCUP), once(ann, EVENT.AUDIOBRIDGE_PEER_CONFIGURED)];
  await ben.configure({ jsep: await page.evaluate((jsep) => (window as any).answer('ben', jsep), joined.jsep) });
  await benUp;
  expect((await setUp)[0]).toMatchObject({ feed: 2, setup: true });
  for (const name of ['ann', 'ben']) await expect.poll(() => packets(page, name)).toBeGreaterThan(20);

  await told(ben, EVENT.AUDIOBRIDGE_ANNOUNCEMENT_STARTED, { file_id: 'bell' }, () => manager.playFile({ ...about, filename: file, file_id: 'bell', loop: true }));
  expect((await manager.isPlaying({ ...about, file_id: 'bell' })).playing).toBe(true);
  expect((await manager.listAnnouncements(about)).announcements).toMatchObject([{ file_id: 'bell', filename: file, playing: true, loop: true }]);
  await told(ben, EVENT.AUDIOBRIDGE_ANNOUNCEMENT_STOPPED, { file_id: 'bell' }, () => manager.stopFile({ ...about, file_id: 'bell' }));
  await told(ben, EVENT.AUDIOBRIDGE_ANNOUNCEMENT_STOPPED, { file_id: 'once' }, () => manager.playFile({ ...about, filename: file, file_id: 'once' }));

  await told(ben, EVENT.AUDIOBRIDGE_PEER_SUSPENDED, { feed: 1 }, () => manager.suspend({ ...about, feed: 1 }));
  await told(ann, EVENT.AUDIOBRIDGE_RESUMED, { feed: 1 }, () => manager.resume({ ...about, feed: 1 }));
  const hangup = once(ann, Janode.EVENT.HANDLE_HANGUP);
  await told(ann, EVENT.AUDIOBRIDGE_KICKED, { feed: 1 }, () => manager.kick({ ...about, feed: 1 }));
  await hangup;
  await told(ben, EVENT.AUDIOBRIDGE_DESTROYED, { room }, () => manager.destroy(about));
});
