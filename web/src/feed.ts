// The command lines that feed a mountpoint, ready to copy.

/** A stream of a mountpoint, as `info` tells it. */
export interface StreamInfo {
  mid?: string;
  type: 'audio' | 'video' | 'data';
  label?: string;
  codec?: string;
  pt?: number;
  /** Of a mountpoint of type `whip`: the publisher has to send this codec. */
  codec_required?: boolean;
  /** Only those who may manage the mountpoint see its ports. */
  port?: number;
  /** The multicast group, or the only address that is listened on. */
  host?: string;
  port2?: number;
  port3?: number;
  rtcpport?: number;
  videosimulcast?: boolean;
  videosvc?: boolean;
}

/** A mountpoint, as `info` tells it. */
export interface MountpointInfo {
  id: number | string;
  description: string;
  type: string;
  enabled: boolean;
  metadata?: string;
  media?: StreamInfo[];
  whip?: boolean;
  publishing?: boolean;
  rtsp?: boolean;
  url?: string;
  filename?: string;
  /** Of a file, in seconds. */
  duration?: number;
  secret?: string;
  /** A secret reveals more. */
  secret_required?: boolean;
  token?: string;
  /** A publisher has to show a token, or the secret. */
  token_required?: boolean;
  srtp?: boolean;
  /** 32 or 80. */
  srtpsuite?: number;
}

/** One way to feed a mountpoint. */
export interface Feed {
  tool: string;
  /** The text to copy. */
  line: string;
  /** A note about it. */
  note?: string;
}

/** Where the server is, as the page was asked for. */
export interface Place {
  /** `http://HOST:8088` */
  origin: string;
  /** The host alone, for addresses of RTP. */
  host: string;
}

/** All ways to feed a mountpoint; none where the server fetches the media itself. */
export function feeds(info: MountpointInfo, place: Place): Feed[] {
  if (info.whip) return whip(info, place);
  const streams = (info.media ?? []).filter((stream) => stream.port !== undefined);
  return streams.length > 0 ? rtp(info, streams, place) : [];
}

/** Whether the secret reveals more. */
export function hasMore(info: MountpointInfo): boolean {
  if (!info.secret_required || info.secret) return false;
  if (info.whip) return true;
  if (info.rtsp || info.filename || info.media?.every((stream) => stream.mid === undefined)) return false;
  return feeds(info, { origin: '', host: '' }).length === 0;
}

/** Why there is nothing to show. */
export function unfed(info: MountpointInfo): string {
  if (info.rtsp) return `The server pulls it by RTSP${info.url ? ` from ${info.url}` : ''}.`;
  if (info.filename) return `The server plays the file ${info.filename}.`;
  if (info.type === 'on demand' || info.media?.every((stream) => stream.mid === undefined)) return 'The server plays it from a file.';
  return 'Its ports are shown to those who know its secret.';
}

const TEST_PICTURE = '-f lavfi -i testsrc2=size=1280x720:rate=30';
const TEST_TONE = '-f lavfi -i sine=frequency=440:sample_rate=48000';

/** The placeholder for values that the page does not know. */
const TOKEN = 'TOKEN';
const KEY = 'KEY';

/** The caps of codecs that GStreamer's WHIP client can send. */
const CAPS: Record<string, string> = {
  vp8: 'video/x-vp8',
  vp9: 'video/x-vp9',
  h264: 'video/x-h264',
  h265: 'video/x-h265',
  av1: 'video/x-av1',
  opus: 'audio/x-opus',
};

/** The codecs that WHIP of OBS and of ffmpeg can send. */
const OBS_WHIP = ['h264', 'h265', 'av1', 'opus'];
const FFMPEG_WHIP = ['h264', 'opus'];

function whip(info: MountpointInfo, { origin }: Place): Feed[] {
  const url = `${origin}/whip/${encodeURIComponent(String(info.id))}`;
  const token = info.token ?? info.secret ?? (info.token_required ? TOKEN : undefined);
  const required = (info.media ?? []).filter((stream) => stream.codec_required).map(codecOf);
  const sends = (codecs: string[]) => required.every((codec) => codecs.includes(codec));
  const names = required.map((codec) => codec.toUpperCase()).join(' and ');
  const needed = required.length > 0 ? ` The mountpoint takes ${names} only.` : '';
  const where = info.secret_required ? ', which is shown with its secret' : ', which is not shown: it has no secret to show it with';
  const placeholder = token === TOKEN ? ` ${TOKEN} stands for the mountpoint’s token${where}.` : '';
  const video = info.media?.find((stream) => stream.type === 'video');
  const audio = info.media?.some((stream) => stream.type === 'audio') ?? false;
  const caps = (kind: string) => {
    const stream = info.media?.find((stream) => stream.type === kind && stream.codec_required);
    return stream ? `${kind}-caps=${CAPS[codecOf(stream)]}` : '';
  };
  const tone = audio ? ` ${TEST_TONE}` : '';
  const sound = audio ? ' -c:a libopus -ar 48000 -ac 2 -b:a 64k' : '';
  const picture = ' -c:v libx264 -profile:v baseline -preset veryfast -tune zerolatency -pix_fmt yuv420p -bf 0 -g 60 -b:v 2M';
  const inputs = video ? ` ${TEST_PICTURE}` : '';
  const feeds: Feed[] = [];
  if (sends(OBS_WHIP)) {
    feeds.push({
      tool: 'OBS',
      line: url,
      note: `Settings → Stream: service WHIP, this as the server${token ? `, and the Bearer Token ${token}` : ''}.${needed}${placeholder}`,
    });
  }
  if (sends(FFMPEG_WHIP)) {
    feeds.push({
      tool: 'ffmpeg',
      line: `ffmpeg -re${inputs}${tone}${video ? picture : ''}${sound} -f whip${token ? ` -authorization ${quote(token)}` : ''} ${quote(url)}`,
      note: `ffmpeg 8.0 or newer; it sends H.264 and Opus.${placeholder}`,
    });
  }
  if (sends(Object.keys(CAPS))) {
    feeds.push({
      tool: 'GStreamer',
      line: [
        'gst-launch-1.0',
        video ? 'videotestsrc is-live=true ! video/x-raw,width=1280,height=720 ! queue ! s.video_0' : '',
        audio ? 'audiotestsrc is-live=true wave=ticks ! queue ! s.audio_0' : '',
        'whipclientsink name=s',
        caps('video'),
        caps('audio'),
        `signaller::whip-endpoint=${quote(url)}`,
        token ? `signaller::auth-token=${quote(token)}` : '',
      ]
        .filter(Boolean)
        .join(' '),
      note: `With gst-plugins-rs.${placeholder}`,
    });
  }
  if (feeds.length === 0) feeds.push({ tool: 'WHIP', line: url, note: `For a client that sends ${names}.${placeholder}` });
  return feeds;
}

/** ffmpeg's encoder of a codec, and what it needs so that viewers can join and repair. */
const FFMPEG: Record<string, string> = {
  vp8: '-c:v libvpx -deadline realtime -cpu-used 8 -b:v 2M -g 60',
  vp9: '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -row-mt 1 -b:v 2M -g 60 -strict experimental',
  h264: '-c:v libx264 -profile:v baseline -preset veryfast -tune zerolatency -pix_fmt yuv420p -b:v 2M -g 60',
  h265: '-c:v libx265 -preset veryfast -tune zerolatency -pix_fmt yuv420p -b:v 2M -g 60',
  av1: '-c:v libsvtav1 -preset 12 -svtav1-params pred-struct=1 -b:v 2M -g 60 -strict experimental',
  opus: '-c:a libopus -ar 48000 -ac 2 -b:a 64k',
  pcmu: '-c:a pcm_mulaw -ar 8000 -ac 1',
  pcma: '-c:a pcm_alaw -ar 8000 -ac 1',
  g722: '-c:a g722 -ar 16000 -ac 1',
};

/** GStreamer's encoder and payloader of a codec. */
const GSTREAMER: Record<string, string> = {
  vp8: 'vp8enc deadline=1 cpu-used=8 target-bitrate=2000000 keyframe-max-dist=60 ! rtpvp8pay mtu=1200',
  vp9: 'vp9enc deadline=1 cpu-used=8 target-bitrate=2000000 keyframe-max-dist=60 ! rtpvp9pay mtu=1200',
  h264: 'videoconvert ! x264enc tune=zerolatency speed-preset=veryfast bitrate=2000 key-int-max=60 ! video/x-h264,profile=constrained-baseline ! rtph264pay mtu=1200 config-interval=-1 aggregate-mode=zero-latency',
  h265: 'videoconvert ! x265enc tune=zerolatency speed-preset=veryfast bitrate=2000 key-int-max=60 ! rtph265pay mtu=1200 config-interval=-1',
  av1: 'videoconvert ! av1enc usage-profile=realtime cpu-used=8 target-bitrate=2000 keyframe-max-dist=60 ! av1parse ! rtpav1pay mtu=1200',
  opus: 'audioconvert ! audioresample ! opusenc bitrate=64000 ! rtpopuspay mtu=1200',
  pcmu: 'audioconvert ! audioresample ! mulawenc ! rtppcmupay mtu=1200',
  pcma: 'audioconvert ! audioresample ! alawenc ! rtppcmapay mtu=1200',
  g722: 'audioconvert ! audioresample ! avenc_g722 ! rtpg722pay mtu=1200',
};

/** The frame sizes of the encodings of a simulcast stream, the lowest first. */
const SIZES = ['320:180', '640:360', '1280:720'];

function rtp(info: MountpointInfo, streams: StreamInfo[], place: Place): Feed[] {
  const media = streams.filter((stream) => stream.type !== 'data');
  const data = streams.filter((stream) => stream.type === 'data');
  const feeds: Feed[] = [];
  const known = (encoders: Record<string, string>) => media.filter((stream) => encoders[codecOf(stream)]);
  const ffmpeg = known(FFMPEG);
  if (ffmpeg.length > 0) {
    const notes = [
      ffmpeg.some((stream) => codecOf(stream) === 'av1') ? 'AV1 over RTP needs ffmpeg 8.0 or newer.' : '',
      // It encrypts its reports as well, and those of mountpoints are plain.
      info.srtp ? `${keyNote()} Its reports go to port 9, where nobody listens: the server takes plain ones only.` : '',
    ];
    feeds.push({ tool: 'ffmpeg', line: ffmpegLine(info, ffmpeg, place), note: notes.filter(Boolean).join(' ') });
  }
  const gstreamer = known(GSTREAMER);
  if (gstreamer.length > 0) {
    const notes = [gstreamer.some((stream) => codecOf(stream) === 'av1') ? 'rtpav1pay is in gst-plugins-rs.' : '', info.srtp ? keyNote() : ''];
    feeds.push({ tool: 'GStreamer', line: gstreamerLine(info, gstreamer, place), note: notes.filter(Boolean).join(' ') });
  }
  const picture = media.find((stream) => stream.type === 'video' && stream.port);
  if (picture && !info.srtp) {
    feeds.push({
      tool: 'OBS',
      line: `rtp://${bracketed(hostOf(picture, place))}:${picture.port}?pkt_size=1200`,
      note:
        'Settings → Output → Advanced → Recording: type Custom Output (FFmpeg), output to URL, this as the path, container rtp, ' +
        `a ${codecOf(picture).toUpperCase()} encoder with a keyframe interval of 60, then Start Recording. Picture only; for picture and sound ` +
        'from OBS use a mountpoint of type whip.',
    });
  }
  for (const stream of data) {
    feeds.push({ tool: 'Text', line: `printf hello | nc -u -w 1 ${hostOf(stream, place)} ${stream.port}`, note: 'Each datagram is a message on the viewers’ data channels.' });
  }
  return feeds;
}

/** Where a stream's packets go: the group or the address that it has, or the one that the page came from. */
function hostOf(stream: StreamInfo, { host }: Place): string {
  return stream.host ?? host;
}

function keyNote(): string {
  return `${KEY} stands for the mountpoint’s srtpcrypto, which is not shown.`;
}

function ffmpegLine(info: MountpointInfo, streams: StreamInfo[], place: Place): string {
  const srtp = info.srtp ? ` -srtp_out_suite AES_CM_128_HMAC_SHA1_${info.srtpsuite ?? 80} -srtp_out_params ${KEY}` : '';
  const scheme = info.srtp ? 'srtp' : 'rtp';
  const inputs = streams.map((stream) => (stream.type === 'video' ? TEST_PICTURE : TEST_TONE));
  const outputs = streams.flatMap((stream, index) =>
    portsOf(stream).map((port, layer, all) => {
      const scale = all.length > 1 ? ` -vf scale=${SIZES[SIZES.length - all.length + layer]}` : '';
      // By default, the muxer sends its reports to the next port.
      const reports = info.srtp ? 9 : stream.rtcpport;
      const rtcp = reports ? `&rtcpport=${reports}` : '';
      const pt = stream.pt === undefined ? '' : ` -payload_type ${stream.pt}`;
      return `-map ${index}${scale} ${FFMPEG[codecOf(stream)]} -f rtp${pt}${srtp} ${quote(`${scheme}://${bracketed(hostOf(stream, place))}:${port}?pkt_size=1200${rtcp}`)}`;
    }),
  );
  return ['ffmpeg -re', ...inputs, ...outputs].join(' ');
}

function gstreamerLine(info: MountpointInfo, streams: StreamInfo[], place: Place): string {
  // It takes the key in hexadecimal digits.
  const key = `"$(echo ${KEY} | base64 -d | od -An -v -tx1 | tr -d ' \\n')"`;
  const srtp = info.srtp ? ` ! srtpenc key=${key} rtp-cipher=aes-128-icm rtp-auth=hmac-sha1-${info.srtpsuite ?? 80}` : '';
  const branches = streams.flatMap((stream) =>
    portsOf(stream).map((port, layer, all) => {
      const [width, height] = (SIZES[SIZES.length - all.length + layer] ?? '1280:720').split(':');
      const source =
        stream.type === 'video'
          ? `videotestsrc is-live=true ! video/x-raw,width=${width},height=${height},framerate=30/1`
          : 'audiotestsrc is-live=true wave=ticks';
      const pt = stream.pt === undefined ? '' : ` pt=${stream.pt}`;
      return `${source} ! ${GSTREAMER[codecOf(stream)]}${pt}${srtp} ! udpsink host=${hostOf(stream, place)} port=${port}`;
    }),
  );
  return ['gst-launch-1.0', ...branches].join(' ');
}

/** The ports of a stream, that of the lowest encoding first. */
function portsOf(stream: StreamInfo): number[] {
  const all = stream.videosimulcast ? [stream.port, stream.port2, stream.port3] : [stream.port];
  return all.filter((port): port is number => !!port);
}

function codecOf(stream: StreamInfo): string {
  return (stream.codec ?? '').toLowerCase();
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** As a shell takes it for one word. */
function quote(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
