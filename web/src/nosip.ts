// The page of plain RTP: two handles of the NoSIP plugin, which call each other through the server.
import { Call } from './call';
import { CaptureError, open, type Capture, type SourceKind } from './capture';
import { wasWanted, type Ending } from './ending';
import { choose, clearNotice, element, endNotice, idle, notice, pageOptions, serverAway, status } from './page';
import { connect, type Jsep, type Session, type Track } from './session';

const options = pageOptions();
const source = element<HTMLSelectElement>('source');
const srtp = element<HTMLSelectElement>('srtp');
const profile = element<HTMLSelectElement>('profile');

/** One of the two ends. */
class End {
  private readonly received = new MediaStream();
  private answer: ((answer: { result: Record<string, any>; jsep?: Jsep }) => void) | null = null;
  private refused: ((error: Error) => void) | null = null;

  private constructor(readonly call: Call, private readonly video: HTMLVideoElement) {
    video.srcObject = this.received;
  }

  static async open(session: Session, video: string, ended: (ending: Ending) => void): Promise<End> {
    let end: End | null = null;
    const call = await Call.attach(session, 'janus.plugin.nosip', {
      message: (data, jsep) => end?.message(data, jsep),
      connected: (up, ending) => !up && ending && ended(ending),
      localTrack: () => {},
      remoteTrack: (track, on) => end?.track(track, on),
      dataOpen: () => {},
      data: () => {},
      slowLink: () => {},
      ended: () => {},
    });
    end = new End(call, element<HTMLVideoElement>(video));
    return end;
  }

  /** Sends a request and gives what the plugin answers. */
  ask(body: Record<string, unknown>, jsep?: Jsep): Promise<{ result: Record<string, any>; jsep?: Jsep }> {
    return new Promise((resolve, reject) => {
      [this.answer, this.refused] = [resolve, reject];
      this.call.send(body, jsep).catch(reject);
    });
  }

  close(): void {
    this.call.detach();
    this.video.srcObject = null;
    this.video.parentElement?.classList.add('empty');
  }

  private message(data: Record<string, any>, jsep?: Jsep): void {
    if (data['error']) this.refused?.(new Error(`${data['error']} (${data['error_code']})`));
    else this.answer?.({ result: (data['result'] ?? {}) as Record<string, any>, jsep });
  }

  private track(track: MediaStreamTrack, on: boolean): void {
    if (on) this.received.addTrack(track);
    else this.received.removeTrack(track);
    this.video.parentElement?.classList.toggle('empty', this.received.getVideoTracks().length === 0);
  }
}

let session: Session | null = null;
let ends: End[] = [];
let capture: Capture | null = null;

choose(source, options.source);
const query = new URLSearchParams(window.location.search);
choose(srtp, query.get('srtp') ?? '');
choose(profile, query.get('profile') ?? '');
srtp.addEventListener('change', showProfile);
element('start').addEventListener('click', () => void start());
element('stop').addEventListener('click', () => stop('Hung up.'));
showProfile();
idle('Not in a call.');

async function start(): Promise<void> {
  clearNotice();
  show(true);
  status('Connecting…');
  try {
    session ??= await connect(options.transport, lostServer);
    capture = await open(source.value as SourceKind, { width: 640, height: 360, camera: '', microphone: '' });
    const lost = (ending: Ending): void => {
      stop('The call has ended.');
      if (!wasWanted(ending)) endNotice('The call has ended.', ending, { label: 'Try again', id: 'again', run: () => void start() });
    };
    ends = [await End.open(session, 'caller-video', lost), await End.open(session, 'callee-video', lost)];
    await dial(ends[0] as End, ends[1] as End, capture.stream);
  } catch (error) {
    if (!session) notice('error', serverAway(error));
    else if (error instanceof CaptureError) notice('warning', error.message, [{ label: 'Use a synthetic picture and tone', id: 'use-synthetic', run: synthetic }]);
    else notice('error', `The call failed: ${error instanceof Error ? error.message : String(error)}`);
    stop('Not in a call.');
  }
}

/** Each description goes from one end through the server to the other. */
async function dial(caller: End, callee: End, stream: MediaStream): Promise<void> {
  const encryption = srtp.value ? { srtp: srtp.value, srtp_profile: profile.value } : {};
  const offered = await caller.ask({ request: 'generate', ...encryption }, await caller.call.makeOffer(tracks(stream)));
  element('offer').textContent = String(offered.result['sdp']);
  const ringing = await callee.ask({ request: 'process', type: 'offer', sdp: offered.result['sdp'], ...encryption });
  if (!ringing.jsep) throw new Error('there is no offer');
  const answered = await callee.ask({ request: 'generate', ...encryption }, await callee.call.answerWith(ringing.jsep, tracks(stream)));
  element('answer').textContent = String(answered.result['sdp']);
  const accepted = await caller.ask({ request: 'process', type: 'answer', sdp: answered.result['sdp'], ...encryption });
  if (!accepted.jsep) throw new Error('there is no answer');
  await caller.call.accept(accepted.jsep);
  status(`In a call by ${/^m=\S+ \d+ RTP\/SAVP|^a=crypto:/m.test(String(answered.result['sdp'])) ? 'SRTP' : 'plain RTP'}.`);
}

function tracks(stream: MediaStream): Track[] {
  const [sound, picture] = [stream.getAudioTracks()[0], stream.getVideoTracks()[0]];
  return [
    { type: 'audio', capture: sound ?? false, recv: true },
    { type: 'video', capture: picture ?? false, recv: true },
  ];
}

function synthetic(): void {
  source.value = 'synthetic';
  void start();
}

function stop(why: string): void {
  for (const end of ends) end.close();
  ends = [];
  for (const track of capture?.stream.getTracks() ?? []) track.stop();
  capture?.close();
  capture = null;
  show(false);
  status(why);
}

function lostServer(reason: string): void {
  session = null;
  stop('Not in a call.');
  notice('error', serverAway(reason));
}

function show(calling: boolean): void {
  element('start').hidden = calling;
  element('stop').hidden = !calling;
  for (const field of [source, srtp, profile]) field.disabled = calling;
}

function showProfile(): void {
  element('profile-field').hidden = !srtp.value;
}
