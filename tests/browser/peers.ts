// What tests of Janode's modules share: an application's session with the server, and PeerConnections in its users' pages.
import Janode from 'janode';
import type { Server } from '../server/portunus.mjs';

/** The page's half: PeerConnections whose descriptions are complete, so that there is nothing to trickle. */
export const PEERS = `
  const complete = (pc) => new Promise((done) => {
    const look = () => pc.iceGatheringState === 'complete' && done({ type: pc.localDescription.type, sdp: pc.localDescription.sdp });
    pc.onicegatheringstatechange = look;
    look();
  });
  const peers = {};
  async function offer(name, tracks, encodings, direction = 'sendonly') {
    const pc = (peers[name] ??= new RTCPeerConnection());
    for (const track of tracks) pc.addTransceiver(track, { direction, ...(track.kind === 'video' && encodings && { sendEncodings: encodings }) });
    await pc.setLocalDescription();
    return complete(pc);
  }
  async function answer(name, jsep) {
    const pc = (peers[name] ??= new RTCPeerConnection());
    await pc.setRemoteDescription(jsep);
    await pc.setLocalDescription();
    return complete(pc);
  }
  async function seen(name, mid) {
    const report = [...(await peers[name].getStats()).values()];
    const stream = report.find((one) => one.type === 'inbound-rtp' && one.kind === 'video' && one.mid === mid);
    return { frames: stream?.framesDecoded ?? 0, width: stream?.frameWidth ?? 0 };
  }
  async function sound() {
    return (await navigator.mediaDevices.getUserMedia({ audio: true })).getTracks()[0];
  }
  Object.assign(window, { peers, offer, answer, seen, sound });
`;

/** An application's session, for as long as `use` takes. */
export async function withSession(server: Server, use: (session: Record<string, any>) => Promise<void>): Promise<void> {
  Janode.Logger?.setLevel?.('none');
  const connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
  const session = await connection.create();
  await use(session);
  await session.destroy();
  await connection.close();
}
