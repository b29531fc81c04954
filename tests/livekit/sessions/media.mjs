// Calls with media: what the signalling tells while somebody publishes, is heard, mutes, stops and leaves.
import { adminToken, joinToken } from '../tokens.mjs';

/** Two participants with this number of PeerConnections each. */
const call = (mode) => async (run) => {
  const room = `media ${mode}`;
  const alice = await run.guest(joinToken(room, 'alice', {}, { name: 'Alice' }), mode);
  await run.told('alice enters', alice);
  const bob = await run.guest(joinToken(room, 'bob'), mode);
  await run.told('bob enters', bob);
  await alice.do('notices', 'bob enters');
  await run.told('alice sees bob', alice);
  await alice.do('play', 'microphone', 440);
  await bob.do('hears', 'microphone', 440);
  await run.told('alice talks', alice);
  await run.told('bob hears her', bob);
  await alice.do('show', 'camera', 320, 240);
  await bob.do('sees', 'camera', 320, 240);
  await run.told('alice shows', alice);
  await run.told('bob sees her', bob);
  await run.twirp('who is there', 'RoomService/ListParticipants', { room }, adminToken(room));
  await alice.do('mute', 'microphone');
  await bob.do('notices', 'microphone of alice is muted');
  await run.told('alice mutes', alice);
  await run.told('bob does not hear her', bob);
  await alice.do('unmute', 'microphone');
  await bob.do('notices', 'microphone of alice is unmuted');
  await run.told('alice unmutes', alice);
  await run.told('bob hears her again', bob);
  await alice.do('data', 'hello', 'chat');
  await bob.do('notices', 'data hello chat of alice');
  await run.told('a message', bob);
  await alice.do('unpublish', 'camera');
  await bob.do('notices', 'camera of alice ends');
  await run.told('alice shows no more', alice);
  await run.told('bob sees her no more', bob);
  await alice.do('leave');
  await bob.do('notices', 'alice leaves');
  await run.told('alice has left', bob);
  await run.twirp('delete', 'RoomService/DeleteRoom', { room }, adminToken(room));
  await run.told('the room ends', bob);
};

export const mediaOne = call('one');
export const mediaTwo = call('two');
