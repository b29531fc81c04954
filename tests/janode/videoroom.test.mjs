// Janode's own module for the video room: what it asks of the control plane, and what it makes of the answers. What
// needs media is in browser/janode.spec.ts.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import Janode from 'janode';
import VideoRoom from 'janode/plugins/videoroom';
import { isReference, startServer } from '../server/index.mjs';
import { offer } from './offer.mjs';

Janode.Logger?.setLevel?.('none');

const ADMIN_KEY = 'k3y';
const { EVENT } = VideoRoom;

describe('Janode’s video room', { skip: isReference && 'needs a key of its own' }, () => {
  let server;
  let connection;
  let session;
  let manager;

  before(async () => {
    server = await startServer({ workers: 1, config: `\n[videoroom]\nadmin_key = "${ADMIN_KEY}"\n` });
    connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
    session = await connection.create();
    manager = await session.attach(VideoRoom);
  });

  after(async () => {
    await session?.destroy();
    await connection?.close();
    assert.equal(await server?.stop(), 0, 'exit status of the server');
  });

  /** A room with these options, and people with these names in it. */
  async function roomWith(options = {}, names = []) {
    const { room } = await manager.create({ admin_key: ADMIN_KEY, notify_joining: true, max_publishers: 6, ...options });
    const people = [];
    for (const display of names) {
      const handle = await session.attach(VideoRoom);
      people.push(Object.assign(handle, { joined: await handle.joinPublisher({ room, display }) }));
    }
    return { room, people };
  }

  it('creates, finds, lists and destroys rooms', async () => {
    const created = await manager.create({ room: 77, description: 'Mine', secret: 's', is_private: false, bitrate: 256000, admin_key: ADMIN_KEY });
    assert.deepEqual(created, { room: 77, permanent: false });
    assert.deepEqual(await manager.exists({ room: 77 }), { room: 77, exists: true });
    const { list } = await manager.list();
    assert.equal(list.find(({ room }) => room === 77).description, 'Mine');
    const hidden = await roomWith({ is_private: true });
    assert.ok(!(await manager.list()).list.some(({ room }) => room === hidden.room));
    assert.ok((await manager.list({ admin_key: ADMIN_KEY })).list.some(({ room }) => room === hidden.room));
    await assert.rejects(manager.list({ admin_key: 'guess' }), /433 /);

    await assert.rejects(manager.create({ room: 77, admin_key: ADMIN_KEY }), /427 /);
    await assert.rejects(manager.create({ room: 78 }), /429 /);
    await assert.rejects(manager.create({ room: 78, admin_key: 'guess' }), /433 /);
    await assert.rejects(manager.create({ room: 'x', admin_key: ADMIN_KEY }), /430 /);
    await assert.rejects(manager.create({ videocodec: 'cinepak', admin_key: ADMIN_KEY }), /430 /);
    await assert.rejects(manager.destroy({ room: 77 }), /429 /);
    await assert.rejects(manager.destroy({ room: 77, secret: 'guess' }), /433 /);
    assert.deepEqual(await manager.destroy({ room: 77, secret: 's' }), { room: 77 });
    await assert.rejects(manager.destroy({ room: 77, secret: 's' }), /426 /);
    assert.equal((await manager.exists({ room: 77 })).exists, false);
  });

  it('keeps a list of tokens', async () => {
    const { room } = await roomWith({ secret: 's' });
    const allow = (action, list) => manager.allow({ room, secret: 's', action, list });
    assert.deepEqual((await allow('enable')).list, []);
    assert.deepEqual((await allow('add', ['ann', 'ben', 'ben'])).list.sort(), ['ann', 'ben']);
    assert.deepEqual((await allow('remove', ['ben'])).list, ['ann']);
    const handle = await session.attach(VideoRoom);
    await assert.rejects(handle.joinPublisher({ room, display: 'x' }), /433 /);
    await assert.rejects(handle.joinPublisher({ room, token: 'ben' }), /433 /);
    assert.equal((await handle.joinPublisher({ room, token: 'ann' })).room, room);
    await handle.detach();
  });

  it('joins, renames, lists and leaves, and tells the others', async () => {
    const { room, people: [ann] } = await roomWith({ pin: '4321' }, []).then(async ({ room }) => {
      const ann = await session.attach(VideoRoom);
      await assert.rejects(ann.joinPublisher({ room }), /429 /);
      await assert.rejects(ann.joinPublisher({ room, pin: '1' }), /433 /);
      await assert.rejects(ann.configure({ display: 'x' }), /424 /);
      ann.joined = await ann.joinPublisher({ room, pin: '4321', display: 'Ann', feed: 11 });
      return { room, people: [ann] };
    });
    assert.equal(ann.joined.feed, 11);
    assert.equal(typeof ann.joined.private_id, 'number');
    assert.deepEqual(ann.joined.publishers, []);

    const told = once(ann, EVENT.VIDEOROOM_PUB_PEER_JOINED);
    const ben = await session.attach(VideoRoom);
    await assert.rejects(ben.joinPublisher({ room, pin: '4321', feed: 11 }), /436 /);
    const { feed } = await ben.joinPublisher({ room, pin: '4321', display: 'Ben' });
    assert.deepEqual((await told)[0], { room, feed, display: 'Ben' });
    await assert.rejects(ben.joinPublisher({ room, pin: '4321' }), /425 /);

    const renamed = once(ann, EVENT.VIDEOROOM_DISPLAY);
    assert.deepEqual(await ben.configure({ display: 'Benjamin' }), { room, feed, display: 'Benjamin', configured: 'ok' });
    assert.deepEqual((await renamed)[0], { feed, display: 'Benjamin' });

    const { participants } = await manager.listParticipants({ room });
    assert.deepEqual(participants.map((one) => [one.feed, one.display, one.publisher]).sort(), [[11, 'Ann', false], [feed, 'Benjamin', false]].sort());

    const left = once(ann, EVENT.VIDEOROOM_LEAVING);
    assert.equal((await ben.leave()).feed, feed);
    assert.equal((await left)[0].feed, feed);
    await assert.rejects(ben.configure({ display: 'again' }), /426 /);
  });

  it('kicks with the secret, and everybody is told', async () => {
    const { room, people: [ann, ben] } = await roomWith({ secret: 's' }, ['Ann', 'Ben']);
    const { feed } = ben.joined;
    await assert.rejects(manager.kick({ room, feed }), /429 /);
    await assert.rejects(manager.kick({ room, feed, secret: 'guess' }), /433 /);
    await assert.rejects(manager.kick({ room, feed: 1, secret: 's' }), /428 /);
    const told = [once(ann, EVENT.VIDEOROOM_KICKED), once(ben, EVENT.VIDEOROOM_LEAVING)];
    assert.deepEqual(await manager.kick({ room, feed, secret: 's' }), { room, feed });
    const [[others], [own]] = await Promise.all(told);
    assert.deepEqual(others, { room, feed });
    assert.deepEqual(own, { room, feed, reason: 'kicked' });
  });

  it('publishes and unpublishes', async () => {
    const { room, people: [ann] } = await roomWith({ videocodec: 'vp8', bitrate_cap: true, bitrate: 128000 }, ['Ann']);
    const { feed } = ann.joined;
    await assert.rejects(ann.unpublish(), /435 /);
    await assert.rejects(ann.publish({ jsep: { type: 'offer', sdp: 'this is no SDP' } }), /465 /);
    const published = await ann.publish({ audio: true, video: true, descriptions: [{ mid: '1', description: 'Camera' }], jsep: offer({ video: true }) });
    assert.equal(published.feed, feed);
    assert.equal(published.jsep.type, 'answer');
    assert.match(published.jsep.sdp, /b=AS:128\r\n/);
    assert.deepEqual(published.streams.map(({ type, mid, codec, description }) => [type, mid, codec, description]), [
      ['audio', '0', 'opus', undefined],
      ['video', '1', 'vp8', 'Camera'],
    ]);
    await assert.rejects(manager.joinSubscriber({ room, feed }), /428 |437 /);
    assert.equal((await ann.configure({ bitrate: 64000, keyframe: true })).configured, 'ok');
    await assert.rejects(ann.configure({ streams: [{ mid: '9', send: false }] }), /428 /);
    assert.equal((await ann.configure({ streams: [{ mid: '1', send: false }] })).configured, 'ok');
    assert.equal((await ann.unpublish()).feed, feed);
    // The same handle may publish again.
    assert.equal((await ann.publish({ jsep: offer() })).streams.length, 1);
    await assert.rejects(ann.start({}), /423 /);
  });

  it('joins and publishes in one', async () => {
    const { room } = await roomWith({ max_publishers: 1, pin: 'p' });
    const ann = await session.attach(VideoRoom);
    await assert.rejects(ann.joinConfigurePublisher({ room, pin: 'q', jsep: offer() }), /433 /);
    const joined = await ann.joinConfigurePublisher({ room, pin: 'p', display: 'Ann', feed: 5, jsep: offer({ video: true }) });
    assert.equal(joined.feed, 5);
    assert.equal(joined.jsep.type, 'answer');
    const { participants } = await manager.listParticipants({ room });
    assert.equal(participants.length, 1);
  });

  it('says that a feed to subscribe to is not there', async () => {
    const { room } = await roomWith();
    const viewer = await session.attach(VideoRoom);
    await assert.rejects(viewer.joinSubscriber({ room, feed: 12345 }), /428 /);
    await assert.rejects(viewer.joinSubscriber({ room, streams: [] }), /430 |437 /);
    await assert.rejects(viewer.joinSubscriber({ room: 1, feed: 12345 }), /426 /);
    await assert.rejects(viewer.update({ subscribe: [{ feed: 1 }] }), /424 /);
  });

  it('switches the recording of a room', async () => {
    const { room } = await roomWith({ secret: 's' });
    await assert.rejects(manager.enable_recording({ room, record: true }), /429 /);
    await assert.rejects(manager.enable_recording({ room, secret: 'guess', record: true }), /433 /);
    const listed = async () => (await manager.list()).list.find((one) => one.room === room).record;
    for (const record of [true, false]) {
      assert.deepEqual(await manager.enable_recording({ room, secret: 's', record }), { room, record });
      assert.equal(await listed(), record);
    }
  });

  it('tells everybody that a room is destroyed', async () => {
    const { room, people } = await roomWith({}, ['Ann', 'Ben', 'Cleo']);
    const told = people.map((one) => once(one, EVENT.VIDEOROOM_DESTROYED));
    await manager.destroy({ room });
    for (const [event] of await Promise.all(told)) assert.deepEqual(event, { room });
    await assert.rejects(people[0].configure({ display: 'x' }), /426 /);
  });

  it('lists no forwarders where there are none', async () => {
    const { room } = await roomWith({ secret: 's' });
    assert.deepEqual((await manager.listForward({ room, secret: 's' })).forwarders, []);
    await assert.rejects(manager.listForward({ room }), /429 /);
    await assert.rejects(manager.stopForward({ room, feed: 1, stream: 1, secret: 's' }), /428 /);
  });
});
