// A phone: Debian's baresip. It plays a tone, and keeps what it hears.
import { connect, type Socket } from 'node:net';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freeTcpPort } from '../server/ports.mjs';
import { TONES } from './audio';
import { Child, folderFor } from './child';
import type { Kamailio } from './kamailio';
import { tonesIn, writeTone } from './sound-file';

type Json = Record<string, any>;

export interface BaresipOptions {
  user: string;
  tone: keyof typeof TONES;
  transport?: 'udp' | 'tcp' | 'tls';
  /** As in `PCMU/8000/1,opus/48000/2`. */
  codecs?: string;
  answer?: 'auto' | 'manual';
  /** Sound is encrypted by SDES: if the other side can, or else there is no call. */
  srtp?: 'srtp' | 'srtp-mand';
  /** It also sends a picture, of its own making, and shows what it gets. */
  video?: 'H264' | 'VP8';
}

export class Baresip {
  readonly events: Json[] = [];

  private constructor(readonly child: Child, private readonly control: Socket, private readonly server: string) {
    let received = '';
    control.setEncoding('utf8').on('data', (text: string) => {
      received += text;
      // Netstrings: LENGTH:JSON,
      for (let found; (found = /^(\d+):/.exec(received)); ) {
        const [begin, length] = [found[0].length, Number(found[1])];
        if (received.length < begin + length + 1) break;
        this.events.push(JSON.parse(received.slice(begin, begin + length)));
        received = received.slice(begin + length + 1);
      }
    });
    control.on('error', () => {});
  }

  /** Starts one that has registered at the server. */
  static async start(kamailio: Kamailio, options: BaresipOptions): Promise<Baresip> {
    const { user, tone, transport = 'udp', codecs = 'PCMU/8000/1', answer = 'auto', srtp, video } = options;
    const folder = folderFor('baresip');
    const port = await freeTcpPort();
    const file = join(folder, 'tone.wav');
    // It plays files as they are: at the rate and with the channels of the codec.
    const [, rate, channels] = codecs.split(',')[0]?.split('/').map(Number) ?? [];
    writeTone(file, TONES[tone], rate, channels);
    writeFileSync(join(folder, 'config'), configuration(folder, file, port, kamailio.certificate, video));
    const server = transport === 'tls' ? `127.0.0.1:${kamailio.tls}` : kamailio.domain;
    const parameters = [`auth_user=${user}`, `auth_pass=${kamailio.secret(user)}`, `answermode=${answer}`, `audio_codecs=${codecs}`, 'regint=600', ...(srtp ? [`mediaenc=${srtp}`] : []), ...(video ? [`video_codecs=${video}`] : [])];
    writeFileSync(join(folder, 'accounts'), `<sip:${user}@${server};transport=${transport}>;${parameters.join(';')}\n`);
    writeFileSync(join(folder, 'contacts'), '');
    const child = new Child(`baresip ${user}`, '/usr/bin/baresip', ['-f', folder, '-v'], folder);
    let control: Socket | null = null;
    await child.until('control connection', async () => (control = await reach(port)));
    const phone = new Baresip(child, control as unknown as Socket, server);
    await child.until('registration', () => child.log().includes('200 OK'));
    return phone;
  }

  /** Gives a command, as in `sndcode 5`. */
  command(line: string): void {
    const [command, ...params] = line.split(' ');
    const text = JSON.stringify({ command, params: params.join(' ') });
    this.control.write(`${Buffer.byteLength(text)}:${text},`);
  }

  /** Calls a user of its server. */
  dial(user: string): void {
    this.command(`dial sip:${user}@${this.server}`);
  }

  /** Waits for an event that it has not told of before. */
  async event(type: string, fields: Json = {}): Promise<Json> {
    const matches = (event: Json) => event['type'] === type && Object.entries(fields).every(([key, value]) => event[key] === value);
    let at = -1;
    await this.child.until(`${type} ${JSON.stringify(fields)} in ${this.events.map((one) => one['type']).join(' ')}`, () => (at = this.events.findIndex(matches)) >= 0);
    return this.events.splice(0, at + 1).at(-1) as Json;
  }

  /** The tones that it hears now. */
  heard(): string[] {
    const files = readdirSync(this.child.folder).filter((name) => /^dump-.*-dec\.wav$/.test(name)).sort();
    return files.length > 0 ? tonesIn(join(this.child.folder, files.at(-1) as string)) : [];
  }

  /** Whether it has decoded a picture that it got. */
  sees(): boolean {
    this.command(`snapshot_recv ${join(this.child.folder, 'seen')}`);
    return readdirSync(this.child.folder).some((name) => name.startsWith('seen'));
  }

  async stop(): Promise<void> {
    this.control.destroy();
    await this.child.stop();
  }
}

function reach(port: number): Promise<Socket | null> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => done(socket));
    socket.once('error', () => done(null));
  });
}

const PICTURE = `
module avcodec.so
module vp8.so
module fakevideo.so
module snapshot.so
video_source fakevideo,none
video_display fakevideo,none
video_size 320x240
video_bitrate 300000
video_fps 15
`;

const configuration = (folder: string, tone: string, port: number, certificate: string, video?: string) => `
sip_listen 127.0.0.1:0
sip_cafile ${certificate}
net_interface 127.0.0.1
call_max_calls 4
audio_source aufile,${tone}
audio_player none,none
audio_alert none,none
module_path /usr/lib/baresip/modules
module g711.so
module g722.so
module opus.so
module srtp.so
module aufile.so
module sndfile.so
module_tmp account.so
module_app ctrl_tcp.so
module_app menu.so
ctrl_tcp_listen 127.0.0.1:${port}
snd_path ${folder}
${video ? PICTURE : ''}`;
