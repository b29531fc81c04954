// Janode's own module for the text room: what it asks of the control plane, and what it makes of the answers. What needs a data
// channel is in browser/textroom.spec.ts.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import Janode from 'janode';
import TextRoom from 'janode/plugins/textroom';
import { isReference, startServer } from '../server/index.mjs';

Janode.Logger?.setLevel?.('none');

const ADMIN_KEY = 'k3y';

describe('Janode’s text room', { skip: isReference && 'needs a key of its own' }, () => {
  let server;
  let connection;
  let session;
  let manager;

  before(async () => {
    server = await startServer({ workers: 1, config: `\n[textroom]\nadmin_key = "${ADMIN_KEY}"\n` });
    connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
    session = await connection.create();
    manager = await session.attach(TextRoom);
  });

  after(async () => {
    await session?.destroy();
    await connection?.close();
    assert.equal(await server?.stop(), 0, 'exit status of the server');
  });

  it('creates, finds, lists and destroys rooms', async () => {
    const created = await manager.create({ room: 77, description: 'Mine', secret: 's', history: 5, admin_key: ADMIN_KEY });
    assert.deepEqual(created, { room: 77, permanent: false });
    assert.deepEqual(await manager.exists({ room: 77 }), { room: 77, exists: true });
    const { list } = await manager.list({});
    assert.deepEqual(list, [{ room: 77, description: 'Mine', pin_required: false, num_participants: 0, history: 5 }]);
    assert.deepEqual(await manager.listParticipants({ room: 77 }), { room: 77, participants: [] });
    assert.deepEqual(await manager.destroy({ room: 77, secret: 's' }), { room: 77, permanent: false });
    assert.deepEqual(await manager.exists({ room: 77 }), { room: 77, exists: false });
  });

  it('shows private rooms to who has the key', async () => {
    const { room } = await manager.create({ is_private: true, admin_key: ADMIN_KEY });
    const rooms = async (options) => (await manager.list(options)).list.map((one) => one.room);
    assert.deepEqual(await rooms({}), []);
    assert.deepEqual(await rooms({ admin_key: ADMIN_KEY }), [room]);
    await manager.destroy({ room });
  });

  it('changes the list of tokens, and announces', async () => {
    const { room } = await manager.create({ secret: 's', admin_key: ADMIN_KEY });
    const allow = (action, list) => manager.allow({ room, secret: 's', action, list });
    assert.deepEqual(await allow('enable'), { room, list: [] });
    assert.deepEqual(await allow('add', ['b', 'a']), { room, list: ['a', 'b'] });
    assert.deepEqual(await allow('remove', ['b']), { room, list: ['a'] });
    assert.deepEqual(await allow('disable'), { room });
    assert.deepEqual(await manager.announcement({ room, secret: 's', text: 'hear' }), {});
    await manager.destroy({ room, secret: 's' });
  });

  it('sets up a data channel, and restarts it', async () => {
    const handle = await session.attach(TextRoom);
    await assert.rejects(handle.restart());
    const { jsep } = await handle.setup();
    assert.equal(jsep.type, 'offer');
    assert.match(jsep.sdp, /^m=application \d+ UDP\/DTLS\/SCTP webrtc-datachannel/m);
    await assert.rejects(handle.setup());
    await handle.detach();
  });

  it('refuses what cannot be done', async () => {
    for (const [name, options] of [
      ['create', { room: 78 }],
      ['create', { room: 78, admin_key: 'guess' }],
      ['listParticipants', { room: 79 }],
      ['destroy', { room: 79 }],
      ['kick', { room: 79, username: 'x' }],
      ['announcement', { room: 79, text: 'x' }],
    ]) {
      await assert.rejects(manager[name](options), `${name} ${JSON.stringify(options)}`);
    }
  });
});
