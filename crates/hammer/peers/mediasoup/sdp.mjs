// Descriptions of sessions: what mediasoup needs of an offer or answer, and what it is described by.

/** The lines of a description: those of the session, and those of each m-line. */
function sections(sdp) {
  const parts = sdp.split(/\r?\n(?=m=)/);
  return parts.map((part) => part.split(/\r?\n/).filter(Boolean));
}

const values = (lines, name) => lines.filter((line) => line.startsWith(`a=${name}:`)).map((line) => line.slice(name.length + 3));

/** Reads a description of a client: its DTLS parameters and its m-lines. */
export function parse(sdp) {
  const [session, ...media] = sections(sdp);
  const one = (name) => values([...session, ...(media[0] ?? [])], name)[0];
  const [algorithm, value] = (one('fingerprint') ?? '').split(' ');
  const setup = one('setup');
  return {
    dtls: { role: setup === 'passive' ? 'server' : 'client', fingerprints: [{ algorithm: algorithm.toLowerCase(), value }] },
    media: media.map(mediaOf),
  };
}

function mediaOf(lines) {
  const [kind, , , ...types] = lines[0].slice(2).split(' ');
  const formats = values(lines, 'rtpmap').map((line) => {
    const [type, codec] = line.split(' ');
    const [name, rate, channels] = codec.split('/');
    return { type: Number(type), name, clockRate: Number(rate), channels: channels ? Number(channels) : undefined };
  });
  const extensions = values(lines, 'extmap').map((line) => {
    const [id, uri] = line.split(' ');
    return { id: Number(id.split('/')[0]), uri };
  });
  const ssrc = values(lines, 'ssrc')[0]?.split(' ')[0];
  return {
    kind,
    mid: values(lines, 'mid')[0],
    types: types.map(Number),
    formats,
    extensions,
    ssrc: ssrc ? Number(ssrc) : undefined,
    sends: !lines.includes('a=recvonly') && !lines.includes('a=inactive'),
  };
}

/** What a transport is described by in each m-line. */
function transportLines({ iceParameters, iceCandidates, dtlsParameters }, setup) {
  const { algorithm, value } = dtlsParameters.fingerprints.find((one) => one.algorithm === 'sha-256');
  return [
    'c=IN IP4 0.0.0.0',
    `a=ice-ufrag:${iceParameters.usernameFragment}`,
    `a=ice-pwd:${iceParameters.password}`,
    `a=fingerprint:${algorithm} ${value}`,
    `a=setup:${setup}`,
    'a=rtcp-mux',
    ...iceCandidates.map(
      (one) => `a=candidate:${one.foundation} 1 ${one.protocol} ${one.priority} ${one.ip} ${one.port} typ ${one.type}`,
    ),
    'a=end-of-candidates',
  ];
}

function session(mids) {
  return [
    'v=0', `o=- ${Date.now()} 1 IN IP4 0.0.0.0`, 's=-', 't=0 0', 'a=ice-lite', `a=group:BUNDLE ${mids.join(' ')}`, 'a=msid-semantic: WMS *',
  ];
}

function codecLines(codec) {
  const channels = codec.channels > 1 ? `/${codec.channels}` : '';
  const parameters = Object.entries(codec.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return [
    `a=rtpmap:${codec.payloadType} ${codec.mimeType.split('/')[1]}/${codec.clockRate}${channels}`,
    ...(parameters.length > 0 ? [`a=fmtp:${codec.payloadType} ${parameters.join(';')}`] : []),
    ...(codec.rtcpFeedback ?? []).map(({ type, parameter }) => `a=rtcp-fb:${codec.payloadType} ${type}${parameter ? ` ${parameter}` : ''}`),
  ];
}

/** One m-line. */
function mediaLines(kind, mid, parameters, transport, { setup, direction }) {
  const codec = parameters.codecs[0];
  const ssrc = direction === 'sendonly' ? parameters.encodings[0].ssrc : undefined;
  return [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${codec.payloadType}`,
    ...transportLines(transport, setup),
    `a=mid:${mid}`,
    `a=${direction}`,
    ...codecLines(codec),
    ...parameters.headerExtensions.map(({ id, uri }) => `a=extmap:${id} ${uri}`),
    ...(ssrc ? [`a=msid:- ${mid}`, `a=ssrc:${ssrc} cname:${parameters.rtcp.cname || 'mediasoup'}`] : []),
  ];
}

const text = (lines) => `${lines.join('\r\n')}\r\n`;

/** The answer to somebody who publishes; `accepted` has the parameters of each m-line. */
export function answer(accepted, transport) {
  const lines = accepted.flatMap(({ kind, mid, parameters }) =>
    mediaLines(kind, mid, parameters, transport, { setup: 'passive', direction: 'recvonly' }));
  return text([...session(accepted.map(({ mid }) => mid)), ...lines]);
}

/** The offer to somebody who watches. */
export function offer(consumers, transport) {
  const lines = consumers.flatMap(({ kind, rtpParameters }, mid) =>
    mediaLines(kind, mid, rtpParameters, transport, { setup: 'actpass', direction: 'sendonly' }));
  return text([...session(consumers.map((_, mid) => mid)), ...lines]);
}
