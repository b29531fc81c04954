// The phone page: an account of a SIP server, with calls in and out.
import { Sending } from './audio/sending';
import { CaptureError, open, openDevice } from './capture';
import { clearNotice, element, endNotice, idle, notice, pageOptions, serverAway, status } from './page';
import { AccountForm, keep, kept } from './phone/account';
import { type Account, address, ending, registrationFailure, shown } from './phone/api';
import { Card } from './phone/card';
import { fillKeypad } from './phone/keypad';
import { PhoneLine, Refusal, type Voice } from './phone/line';
import { Messages } from './phone/messages';
import { Phone, type PhoneEvents } from './phone/phone';
import { Tones } from './phone/tones';
import { Whereabouts } from './phone/whereabouts';
import { comeBack } from './return';
import { Sounds } from './sounds';
import { connect, type Session } from './session';

const options = pageOptions();
const title = document.title;
const number = element<HTMLInputElement>('number');
const withPicture = element<HTMLInputElement>('with-picture');
const cards = new Map<PhoneLine, Card>();
const tones = new Tones();
const sounds = new Sounds(element('sounds'), () => {
  notice('info', 'The browser waits for you before it plays sound.', [{ label: 'Play sound', id: 'play-sound', run: () => { clearNotice(); sounds.resume(); } }]);
});
const sending = new Sending(options, () => run(sendOther()));
const form = new AccountForm((account) => void register(account));

let session: Session | null = null;
let phone: Phone | null = null;
/** The account whose phone this is, or is about to be. */
let account: Account | null = null;
/** The calls that the page had before it was reloaded. */
let lost = new Set<string>();
/** The other ends of the calls that the server had when it went away. */
let cut: string[] = [];
/** The transfers that calls follow: the call to end when they are answered. */
const following = new Map<PhoneLine, PhoneLine>();

const server = () => account?.server ?? '';
const named = (uri: string, displayname?: string) => shown(uri, server(), displayname);

const whereabouts = new Whereabouts(server, (line) => line.call_id && run(phone?.take(line.call_id, line.peer ?? '')));
const messages = new Messages(async (to, text) => run(phone?.write(to ? address(to, server()) : null, text)), named);

element<HTMLFormElement>('dial-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const to = number.value.trim();
  if (!to || !phone) return;
  clearNotice();
  run(phone.dial(address(to, server()), withPicture.checked).then(() => (number.value = '')));
});
element('erase').addEventListener('click', () => (number.value = number.value.slice(0, -1)));
element('unregister').addEventListener('click', () => run(phone?.unregister()));
fillKeypad(element('pad'), 'dial', (key) => {
  tones.key(key);
  number.value += key;
});
setInterval(() => {
  for (const card of cards.values()) card.tick();
  whereabouts.tick();
}, 500);
idle('Not registered.');
comeBackAs();

/** Takes a call again that this page had. */
function comeBackTo(id: string, peer: string): void {
  // The next time that a line is free, if none is.
  if (phone?.hasFree && lost.delete(id)) run(phone.take(id, peer));
}

/** The server was started anew, and has no calls any more. */
function tellCut(): void {
  const [peer] = cut;
  if (peer === undefined) return;
  const again = () => {
    clearNotice();
    run(phone?.dial(peer, withPicture.checked));
  };
  notice('warning', `The call with ${named(peer)} has ended, as the server was started anew.`, [{ label: 'Call again', id: 'again', run: again }]);
}

async function register(entered: Account): Promise<void> {
  clearNotice();
  status('Registering…');
  account = entered;
  try {
    session ??= await connect(options.transport, lostServer);
    phone = await Phone.start(session, entered, voice, events);
  } catch (error) {
    idle('Not registered.');
    notice('error', serverAway(error));
  }
}

/** The media that calls send: opened with the first call. */
const voice: Voice = {
  open: async (picture) => {
    if (!sending.track && !sending.silent) await sending.open();
    return { sound: sending.track, picture: picture ? await openPicture() : null };
  },
};

async function openPicture(): Promise<MediaStreamTrack | null> {
  const size = { width: 640, height: 360, camera: '', microphone: '' };
  const kind = element<HTMLSelectElement>('source').value;
  if (kind === 'none') return null;
  if (kind === 'devices') return openDevice('video', size);
  const { stream } = await open('synthetic', size);
  for (const track of stream.getAudioTracks()) track.stop();
  return stream.getVideoTracks()[0] ?? null;
}

async function sendOther(): Promise<void> {
  if (!phone?.calls.length) return;
  await sending.open();
  for (const line of phone.calls) await line.replaceSound(sending.track);
}

const events: PhoneEvents = {
  registered: (resumable) => {
    show(true);
    status(account?.guest ? 'Ready to call, without a registration.' : `Registered as ${account?.user}.`);
    remember();
    for (const { call_id: id, username } of resumable) comeBackTo(id, username);
    if (resumable.length === 0) tellCut();
    cut = [];
  },
  registrationFailed: (code, reason) => {
    notice('error', registrationFailure(code, reason));
    giveUp();
  },
  unregistered: giveUp,
  changed: (line) => {
    if (line.state !== 'idle' && !cards.has(line)) {
      const card = new Card(line, cardEvents);
      cards.set(line, card);
      element('calls').append(card.root);
    }
    if (line.state === 'idle') {
      cards.get(line)?.close();
      cards.delete(line);
      sounds.keep(new Set([...cards.keys()].map(key)));
      if (cards.size === 0) sending.close();
      element('level-field').hidden ||= cards.size === 0;
    }
    if (line.state === 'talking') {
      const before = following.get(line);
      following.delete(line);
      if (before?.state === 'talking') run(before.hangup());
    }
    for (const card of cards.values()) card.show();
    ring();
    remember();
  },
  ended: (line, peer, how) => {
    following.delete(line);
    const name = named(peer, line.displayname);
    if (line.lost) return endNotice(`The call with ${name} has ended.`, line.lost);
    const why = ending(how, name);
    if (why) notice(/elsewhere/i.test(how.reason) ? 'info' : 'warning', why);
  },
  failed: (error) => failed(error),
  track: (line, track) => {
    // Its sound comes with the picture: there is one element for each.
    if (track.kind === 'audio') sounds.play(key(line), track);
    cards.get(line)?.track(track);
  },
  whereabouts: (lines) => {
    whereabouts.show(lines, new Set(phone?.lines.map(({ id }) => id)));
    for (const line of lines) if (line.resumable) comeBackTo(line.call_id ?? '', line.peer ?? '');
  },
  missed: (caller, displayname) => notice('info', `${named(caller, displayname)} called while you were busy.`),
  message: (result) => messages.came(String(result['sender'] ?? ''), String(result['displayname'] ?? ''), String(result['content'] ?? ''), String(result['content_type'] ?? '')),
  sent: (callId) => messages.taken(callId),
  delivered: (callId, code, reason) => messages.delivered(callId, code, reason),
  pressed: (line, digit) => cards.get(line)?.pressed(digit),
  transfer: (line, refer, to, by) => {
    notice('info', `${named(by || line.peer)} asks you to call ${named(to)} instead.`, [
      { label: 'Call', id: 'follow', run: () => run(follow(line, refer, to)) },
      { label: 'No', id: 'refuse', run: () => { clearNotice(); run(line.send({ request: 'decline', refer_id: refer })); } },
    ]);
  },
  transferred: (line, status, reason) => {
    const name = named(line.peer, line.displayname);
    if (status < 200) return;
    if (status >= 300) return notice('warning', `${name} could not be connected: ${status} ${reason}.`);
    notice('info', `${name} is connected.`);
    if (line.state === 'talking') run(line.hangup());
  },
};

async function follow(line: PhoneLine, refer: number, to: string): Promise<void> {
  clearNotice();
  if (!phone) return;
  const free = phone.free;
  following.set(free, line);
  await phone.dial(to, line.hasPicture && withPicture.checked, refer);
}

const cardEvents = {
  run,
  name: (line: PhoneLine) => named(line.peer, line.displayname),
  others: (than: PhoneLine) => phone?.calls.filter((line) => line !== than && line.state === 'talking') ?? [],
  accept: (line: PhoneLine, picture: boolean) => {
    clearNotice();
    run(phone?.accept(line, picture));
  },
  hold: (line: PhoneLine, held: boolean) => run(held ? line.hold(true) : phone?.resume(line)),
  key: (line: PhoneLine, key: string) => {
    tones.key(key);
    run(line.key(key));
  },
  transfer: (line: PhoneLine, to: string | PhoneLine) => {
    if (typeof to === 'string') run(line.transfer(address(to, server())));
    else run(line.transfer(to.peer, to.callId));
  },
};

/** Rings as long as somebody calls, or is called. */
function ring(): void {
  const calls = phone?.calls ?? [];
  const calling = calls.find(({ state }) => state === 'ringing');
  const talking = calls.some(({ state, held }) => state === 'talking' && !held);
  const away = calls.some((line) => line.state === 'calling' && line.progress !== '' && !line.early && !line.refer);
  tones.set(calling && !talking ? 'ring' : away ? 'away' : null);
  document.title = calling ? `☎ ${named(calling.peer, calling.displayname)} is calling` : title;
}

/** Keeps what a reload needs. */
function remember(): void {
  if (!account || !phone) return;
  keep({ account, calls: phone.calls.filter(({ state }) => state === 'talking').map(({ callId }) => callId) });
}

function giveUp(): void {
  const over = phone;
  phone = null;
  over?.close();
  for (const card of cards.values()) card.close();
  cards.clear();
  following.clear();
  sounds.keep(new Set());
  sending.close();
  tones.set(null);
  document.title = title;
  whereabouts.show([], new Set());
  keep(null);
  show(false);
  idle('Not registered.');
}

function lostServer(reason: string): void {
  session = null;
  const before = kept();
  cut = phone?.calls.filter(({ state }) => state === 'talking').map(({ peer }) => peer) ?? [];
  giveUp();
  // The server may be back after a reload, and have the calls.
  keep(before);
  notice('error', serverAway(reason));
  if (before) void returnTo(before.account);
}

/** Registers again, once there is a server. */
async function returnTo(before: Account): Promise<void> {
  account = before;
  const isWanted = (): boolean => account === before && !phone;
  const failure = await comeBack({
    isWanted,
    attempt: async () => {
      session = await connect(options.transport, lostServer);
      if (isWanted()) comeBackAs();
    },
  });
  if (failure !== undefined) notice('error', serverAway(failure));
}

/** After a reload, or when the server was away, the tab has its account, and its calls as long as the server keeps them. */
function comeBackAs(): void {
  const before = kept();
  if (!before) return;
  form.fill(before.account);
  lost = new Set(before.calls);
  void register(before.account);
}

function show(registered: boolean): void {
  element('account').hidden = registered;
  element('phone').hidden = element('side').hidden = element('unregister').hidden = !registered;
  sending.moveFields(element(registered ? 'live-sound' : 'setup-sound'));
}

/** Does something, and tells the user if it fails. */
function run(work: Promise<unknown> | undefined): void {
  work?.catch((error: unknown) => failed(error));
}

function failed(error: unknown): void {
  if (error instanceof CaptureError) {
    return notice('warning', error.message, [{ label: 'Only listen', id: 'use-none', run: () => { clearNotice(); sending.listenOnly(); } }]);
  }
  if (error instanceof Refusal) {
    if (!phone?.lines.length || element('phone').hidden) giveUp();
    return notice('error', `The server says: ${error.message}${error.code ? ` (${error.code})` : ''}`);
  }
  notice('error', error instanceof Error ? error.message : String(error));
}

function key(line: PhoneLine): string {
  return String(phone?.lines.indexOf(line));
}
