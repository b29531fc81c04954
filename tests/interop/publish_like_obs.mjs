// Publishes H.264 and Opus by WHIP as OBS Studio does, with the library that OBS has for it (libdatachannel):
// `publish_like_obs.mjs ENDPOINT TOKEN`. The pictures come from ffmpeg. It deletes the resource when its input ends.
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { Audio, PeerConnection, RtcpNackResponder, Video } from 'node-datachannel';

const [endpoint, token] = process.argv.slice(2);
const headers = { 'Content-Type': 'application/sdp', Authorization: `Bearer ${token}` };

const peer = new PeerConnection('obs', { iceServers: [], disableAutoNegotiation: true });
const [AUDIO, VIDEO] = [{ ssrc: 10, pt: 111 }, { ssrc: 20, pt: 96 }];

const audio = new Audio('0', 'SendOnly');
audio.addOpusCodec(AUDIO.pt);
audio.addSSRC(AUDIO.ssrc, 'obs', 'obs-stream', 'obs-audio');
const video = new Video('1', 'SendOnly');
video.addH264Codec(VIDEO.pt);
video.addSSRC(VIDEO.ssrc, 'obs', 'obs-stream', 'obs-video');
const tracks = [peer.addTrack(audio), peer.addTrack(video)];
for (const track of tracks) track.setMediaHandler(new RtcpNackResponder());

// OBS sends its offer before it has candidates.
const offered = new Promise((done) => peer.onLocalDescription(done));
const connected = new Promise((done, failed) =>
  peer.onStateChange((state) => (state === 'connected' ? done() : state === 'failed' && failed(new Error(state)))),
);
peer.setLocalDescription('offer');
const answer = await fetch(endpoint, { method: 'POST', headers, body: await offered });
if (answer.status !== 201) throw new Error(`${answer.status}: ${await answer.text()}`);
const resource = new URL(answer.headers.get('location'), endpoint);
peer.setRemoteDescription(await answer.text(), 'answer');
await connected;

const ports = await Promise.all(
  tracks.map(async (track) => {
    const socket = createSocket('udp4');
    socket.on('message', (packet) => track.isOpen() && track.sendMessageBinary(packet));
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket.address().port;
  }),
);
const ffmpeg = spawn(
  'ffmpeg',
  `-v error -re -f lavfi -i testsrc2=size=320x180:rate=30 -re -f lavfi -i sine=frequency=440:sample_rate=48000
   -map 0 -c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g 30 -bf 0 -b:v 300k
   -payload_type ${VIDEO.pt} -ssrc ${VIDEO.ssrc} -f rtp rtp://127.0.0.1:${ports[1]}?pkt_size=1200
   -map 1 -c:a libopus -ac 2 -b:a 64k -payload_type ${AUDIO.pt} -ssrc ${AUDIO.ssrc} -f rtp rtp://127.0.0.1:${ports[0]}`
    .trim()
    .split(/\s+/),
  { stdio: ['ignore', 'ignore', 'inherit'] },
);
console.log('publishing');
process.stdin.resume();
process.stdin.on('end', async () => {
  ffmpeg.kill('SIGKILL');
  const deleted = await fetch(resource, { method: 'DELETE', headers });
  peer.close();
  process.exit(deleted.status === 200 ? 0 : 1);
});
