// A phone: Debian's linphonec. It plays a tone, and keeps what it hears.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TONES } from './audio';
import { Child, folderFor } from './child';
import type { Kamailio } from './kamailio';
import { tonesIn, writeTone } from './sound-file';

export interface LinphoneOptions {
  user: string;
  tone: keyof typeof TONES;
  transport?: 'udp' | 'tcp' | 'tls';
  /** Names and clock rates, as in `PCMU/8000`: the only ones that it offers. */
  codecs?: string[];
  answer?: 'auto' | 'manual';
  srtp?: boolean;
}

const CODECS = ['opus/48000', 'speex/16000', 'speex/8000', 'PCMU/8000', 'PCMA/8000', 'GSM/8000', 'G722/8000', 'speex/32000', 'L16/44100'];

export class Linphone {
  private constructor(readonly child: Child, private readonly rate: number) {}

  /** Starts one that has registered at the server. */
  static async start(kamailio: Kamailio, options: LinphoneOptions): Promise<Linphone> {
    const { user, tone, codecs = ['PCMU/8000'], answer = 'auto' } = options;
    const folder = folderFor('linphone');
    mkdirSync(join(folder, '.local/share/linphone'), { recursive: true });
    writeTone(join(folder, 'tone.wav'), TONES[tone]);
    writeFileSync(join(folder, 'rc'), configuration(kamailio, options, codecs));
    const child = new Child(`linphone ${user}`, '/usr/bin/linphonec', ['-c', join(folder, 'rc')], folder, { HOME: folder });
    const phone = new Linphone(child, rateOf(codecs[0]));
    phone.command('soundcard use files', `play ${join(folder, 'tone.wav')}`, `record ${join(folder, 'heard.wav')}`);
    if (answer === 'auto') phone.command('autoanswer enable');
    await child.until('registration', () => {
      phone.command('status register');
      return /registered, identity/.test(child.log());
    });
    return phone;
  }

  /** Gives commands, as in `call sip:…`. */
  command(...lines: string[]): void {
    this.child.process.stdin.write(lines.map((line) => `${line}\n`).join(''));
  }

  /** Waits until it has written something. */
  says(text: string | RegExp): Promise<void> {
    return this.child.until(`word of ${text}`, () => (typeof text === 'string' ? this.child.log().includes(text) : text.test(this.child.log())));
  }

  /** Ends all calls, and waits until they have ended. */
  async endCalls(): Promise<void> {
    this.command('terminate all');
    await this.child.until('end of the calls', () => {
      this.command('calls');
      return /No active call\.?\s+(linphonec> )?$/.test(this.child.log());
    });
  }

  /** The tones that it hears now. */
  heard(): string[] {
    return tonesIn(join(this.child.folder, 'heard.wav'), this.rate);
  }

  async stop(): Promise<void> {
    this.command('quit');
    await this.child.stop();
  }
}

/** The rate of the sound of a codec; G.722's is not that of its clock. */
const rateOf = (codec = '') => (codec.startsWith('G722') ? 16_000 : Number(codec.split('/')[1]));

function configuration(kamailio: Kamailio, { user, transport = 'udp', srtp }: LinphoneOptions, codecs: string[]): string {
  const server = transport === 'tls' ? `127.0.0.1:${kamailio.tls}` : kamailio.domain;
  const payloads = CODECS.map((codec, n) => {
    const [mime, rate] = codec.split('/');
    return `[audio_codec_${n}]\nmime=${mime}\nrate=${rate}\nchannels=${mime === 'opus' ? 2 : 1}\nenabled=${codecs.includes(codec) ? 1 : 0}\n`;
  });
  return `[sip]
sip_port=-1
sip_tcp_port=-1
sip_tls_port=-1
default_proxy=0
register_only_when_network_is_up=0
guess_hostname=0
media_encryption=${srtp ? 'srtp' : 'none'}
media_encryption_mandatory=${srtp ? 1 : 0}
root_ca=${kamailio.certificate}
verify_server_certs=0
verify_server_cn=0
[rtp]
audio_rtp_port=-1
[sound]
echocancellation=0
[proxy_0]
reg_proxy=<sip:${server};transport=${transport}>
reg_identity="${user}" <sip:${user}@${server}>
reg_expires=600
reg_sendregister=1
publish=0
[auth_info_0]
username=${user}
passwd=${kamailio.secret(user)}
realm=portunus.test
${payloads.join('')}`;
}
