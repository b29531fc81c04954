// Offers and answers without a PeerConnection behind them, for what is asked of the control plane alone.

const AUDIO = ['m=audio 9 UDP/TLS/RTP/SAVPF 111 0', 'a=rtpmap:111 opus/48000/2', 'a=fmtp:111 minptime=10;useinbandfec=1', 'a=rtpmap:0 PCMU/8000', 'a=ssrc:1234 cname:test'];
const VIDEO = ['m=video 9 UDP/TLS/RTP/SAVPF 96', 'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96 nack pli', 'a=ssrc:5678 cname:test'];

const FINGERPRINT = Array.from({ length: 32 }, (_, index) => (index + 16).toString(16).toUpperCase()).join(':');

/** An offer of one audio section, and one of video where asked for, as a browser writes it. */
export function offer({ video = false } = {}) {
  const sections = [AUDIO, ...(video ? [VIDEO] : [])];
  const lines = sections.flatMap(([media, ...attributes], mid) => [
    media,
    'c=IN IP4 0.0.0.0',
    'a=rtcp:9 IN IP4 0.0.0.0',
    'a=ice-ufrag:abcd',
    'a=ice-pwd:abcdefghijklmnopqrstuvwx',
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${FINGERPRINT}`,
    'a=setup:actpass',
    `a=mid:${mid}`,
    'a=sendrecv',
    'a=rtcp-mux',
    ...attributes,
  ]);
  const group = `a=group:BUNDLE ${sections.map((_, mid) => mid).join(' ')}`;
  return { type: 'offer', sdp: ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', group, ...lines, ''].join('\r\n') };
}

/** An answer that takes all that an offer of the server's offers. */
export function answer({ sdp }) {
  const others = /^a=(ssrc|candidate|end-of-candidates|msid:)/;
  const own = [
    [/^a=sendonly$/, 'a=recvonly'],
    [/^a=setup:.*/, 'a=setup:active'],
    [/^a=fingerprint:.*/, `a=fingerprint:sha-256 ${FINGERPRINT}`],
    [/^a=ice-ufrag:.*/, 'a=ice-ufrag:abcd'],
    [/^a=ice-pwd:.*/, 'a=ice-pwd:abcdefghijklmnopqrstuvwx'],
  ];
  const lines = sdp.split('\r\n').filter((line) => !others.test(line));
  return { type: 'answer', sdp: lines.map((line) => own.reduce((line, [from, to]) => line.replace(from, to), line)).join('\r\n') };
}
