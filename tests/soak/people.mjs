// People of the soak who do what hammer's loads do not: they are kicked, and write to each other. Signalling is Janode's,
// PeerConnections are libdatachannel's.
import { once } from 'node:events';
import Janode from 'janode';
import AudioBridge from 'janode/plugins/audiobridge';
import TextRoom from 'janode/plugins/textroom';
import VideoRoom from 'janode/plugins/videoroom';
import { Audio, PeerConnection } from 'node-datachannel';

Janode.Logger?.setLevel?.('none');

/** How long anything may take, in ms: a machine with two cores has other work, too. */
const PATIENCE_MS = 30_000;
/** Opus of 20 ms in which nothing is heard. */
const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);
const OPUS = 111;
const SECRET = 'soak';

/** Fails with `what` if a promise takes too long. */
function soon(what, promise) {
  let timer;
  const late = new Promise((_, failed) => (timer = setTimeout(() => failed(new Error(`${what}: not in time`)), PATIENCE_MS)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits for a condition. */
async function until(what, condition) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`${what}: not in time`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A PeerConnection that talks by one track, listens to all tracks and notes what data channels say. */
class Peer {
  packets = 0;
  texts = [];

  constructor(name) {
    this.connection = new PeerConnection(name, { iceServers: [], disableAutoNegotiation: true });
    this.connection.onTrack((track) => this.listen(track));
    this.connection.onDataChannel((channel) => this.hold(channel));
  }

  listen(track) {
    // The connection holds its tracks, JavaScript has to hold them as well.
    (this.tracks ??= []).push(track);
    track.onMessage(() => (this.packets += 1));
  }

  hold(channel) {
    (this.channels ??= []).push(channel);
    channel.onMessage((text) => this.texts.push(JSON.parse(text)));
  }

  /** Adds a track that talks from when it is open. */
  talk(direction) {
    const media = new Audio('0', direction);
    const ssrc = 1 + Math.floor(Math.random() * 0x7fff_ffff);
    media.addOpusCodec(OPUS);
    media.addSSRC(ssrc, 'soak', 'soak', 'soak');
    const track = this.connection.addTrack(media);
    this.listen(track);
    const packet = Buffer.concat([Buffer.from([0x80, OPUS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), SILENCE]);
    packet.writeUInt32BE(ssrc, 8);
    let number = 0;
    this.talking = setInterval(() => {
      if (!track.isOpen()) return;
      number += 1;
      packet.writeUInt16BE(number & 0xffff, 2);
      packet.writeUInt32BE((number * 960) >>> 0, 4);
      track.sendMessageBinary(packet);
    }, 20);
  }

  async describe(type) {
    const gathered = new Promise((done) => this.connection.onGatheringStateChange((state) => state === 'complete' && done()));
    this.connection.setLocalDescription(type);
    await soon('candidates', gathered);
    // Without candidates, the server learns the address from the checks, which come by the relay.
    const sdp = this.connection.localDescription().sdp.replace(/^a=candidate:.*\r\n/gm, '');
    return { type, sdp };
  }

  offer() {
    return this.describe('offer');
  }

  answer({ sdp }) {
    this.connection.setRemoteDescription(sdp, 'offer');
    return this.describe('answer');
  }

  accept({ sdp }) {
    this.connection.setRemoteDescription(sdp, 'answer');
  }

  close() {
    clearInterval(this.talking);
    this.connection.close();
  }
}

/** Runs `visit` with a session and gives it a way to make peers; both end with it. */
async function visit(server, act) {
  const connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
  const peers = [];
  const peer = (name) => {
    peers.push(new Peer(name));
    return peers.at(-1);
  };
  try {
    const session = await connection.create();
    await act(session, peer);
    await session.destroy();
  } finally {
    for (const one of peers) one.close();
    await connection.close().catch(() => {});
  }
}

/** One publishes in a video room, one watches; the first is kicked. Returns the packets that arrived. */
export async function videoRoom(server) {
  let packets = 0;
  await visit(server, async (session, peer) => {
    const manager = await session.attach(VideoRoom);
    const { room } = await manager.create({ max_publishers: 3, secret: SECRET, is_private: true });
    const talker = await session.attach(VideoRoom);
    const talking = peer('talker');
    talking.talk('SendOnly');
    const { feed } = await talker.joinPublisher({ room, display: 'talker' });
    const up = once(talker, Janode.EVENT.HANDLE_WEBRTCUP);
    talking.accept((await talker.publish({ jsep: await talking.offer() })).jsep);
    await soon('a publisher', up);

    const viewer = await session.attach(VideoRoom);
    const viewing = peer('viewer');
    const joined = await viewer.joinSubscriber({ room, streams: [{ feed }] });
    await viewer.start({ jsep: await viewing.answer(joined.jsep) });
    await until('packets of a publisher', () => viewing.packets >= 50);

    const kicked = once(talker, Janode.EVENT.HANDLE_HANGUP);
    await manager.kick({ room, feed, secret: SECRET });
    await soon('the end of a publisher that is kicked', kicked);
    packets = viewing.packets;
    await manager.destroy({ room, secret: SECRET });
  });
  return packets;
}

/** Two meet in an audio room; one is kicked, the other leaves. Returns the packets that arrived. */
export async function audioRoom(server) {
  let packets = 0;
  await visit(server, async (session, peer) => {
    const manager = await session.attach(AudioBridge);
    const { room } = await manager.create({ secret: SECRET, is_private: true, sampling_rate: 16_000 });
    const members = [];
    for (const name of ['ann', 'ben']) {
      const handle = await session.attach(AudioBridge);
      const own = peer(name);
      own.talk('SendRecv');
      const { feed } = await handle.join({ room, display: name });
      own.accept((await handle.configure({ jsep: await own.offer(), muted: false })).jsep);
      members.push({ handle, own, feed });
    }
    const [ann, ben] = members;
    await until('a mix', () => ann.own.packets >= 10 && ben.own.packets >= 10);
    const kicked = once(ben.handle, Janode.EVENT.HANDLE_HANGUP);
    await manager.kick({ room, feed: ben.feed, secret: SECRET });
    await soon('the end of a participant that is kicked', kicked);
    const before = ann.own.packets;
    await until('a mix after a kick', () => ann.own.packets > before);
    await ann.handle.leave();
    packets = ann.own.packets + ben.own.packets;
    await manager.destroy({ room, secret: SECRET });
  });
  return packets;
}

/** Two write to each other in a text room; one is kicked. Returns the messages that arrived. */
export async function textRoom(server) {
  const MESSAGES = 10;
  let messages = 0;
  await visit(server, async (session, peer) => {
    const manager = await session.attach(TextRoom);
    const { room } = await manager.create({ secret: SECRET, history: 5, is_private: true });
    const members = [];
    for (const username of ['al', 'bo']) {
      const handle = await session.attach(TextRoom);
      const own = peer(username);
      const { jsep } = await handle.setup();
      const channel = own.connection.createDataChannel('JanusDataChannel');
      own.hold(channel);
      await handle.ack(await own.answer(jsep));
      await until('a data channel', () => channel.isOpen());
      const ask = (request) => channel.sendMessage(JSON.stringify({ transaction: 't', room, ...request }));
      ask({ textroom: 'join', username });
      members.push({ own, ask, said: () => own.texts.filter((one) => one.textroom === 'message').length });
    }
    for (const { own } of members) await until('joins', () => own.texts.some((one) => one.textroom === 'success'));
    for (let number = 0; number < MESSAGES; number += 1) members[0].ask({ textroom: 'message', text: `message ${number}` });
    for (const { said } of members) await until('messages', () => said() >= MESSAGES);
    await manager.kick({ room, username: 'bo', secret: SECRET });
    const isKick = (one) => one.textroom === 'kicked' && one.username === 'bo';
    for (const { own } of members) await until('word of a kick', () => own.texts.some(isKick));
    messages = members.reduce((sum, { said }) => sum + said(), 0);
    await manager.destroy({ room, secret: SECRET });
  });
  return messages;
}
