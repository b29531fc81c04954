// One handle with its PeerConnection: what it is like, why it is bad, and its end.
import { make } from '../make';
import { clearNotice, element, notice } from '../page';
import { everySeen, SECOND } from '../seen';
import { bitrate, duration, time } from '../units';
import { ask, CODES, explain, Refused, type Json } from './api';
import { Minute } from './minute';
import { short } from './sessions';
import { showPairs, showStreams } from './streams';
import { showFigures } from './table';
import type { Cause, HandleInfo, WebRtc } from './wire';

const query = new URLSearchParams(location.search);
const [session, handle] = [query.get('session') ?? '', query.get('handle') ?? ''];
const minute = new Minute();
const captureButton = element<HTMLButtonElement>('capture');
const buttons = [captureButton, ...['hangup', 'detach', 'end'].map((id) => element<HTMLButtonElement>(id))];
let waiting = false;
/** Why the server could not be asked, as it stands on the page. */
let failure = '';
/** Stops the requests for a connection that is gone. */
let gone = false;
let capturing = false;

element<HTMLAnchorElement>('events-link').href = `events.html?${new URLSearchParams({ session })}`;
captureButton.addEventListener('click', () => void act(capturing ? 'stop_pcap' : 'start_pcap', [session, handle]));
end('hangup', 'hangup_webrtc', [session, handle], 'Hang up? The client is told, and may call again.');
end('detach', 'detach_handle', [session, handle], 'Detach the handle? Its PeerConnection ends, and the client is told.');
end('end', 'destroy_session', [session], 'End the session? All its handles and PeerConnections end, and the client is not told.');
everySeen(SECOND, () => () => void refresh());

async function refresh(): Promise<void> {
  // A server that is slow is not asked again and again.
  if (waiting || gone) return;
  waiting = true;
  try {
    const { info } = await ask<{ info: HandleInfo }>('handle_info', {}, session, handle);
    if (failure) clearNotice();
    failure = '';
    for (const button of buttons) button.disabled = false;
    show(info);
  } catch (error) {
    gone = error instanceof Refused && [CODES.noSession, CODES.noHandle].some((code) => code === error.code);
    if (gone) ended();
    else if (explain(error) !== failure) notice('error', (failure = explain(error)));
  } finally {
    waiting = false;
  }
}

function ended(): void {
  element('status').textContent = 'It has ended. What stands here is what was known last.';
  for (const button of buttons) button.disabled = true;
}

function show(info: HandleInfo): void {
  const { webrtc } = info;
  const name = [short(info.plugin), info.opaque_id].filter(Boolean).join(' · ');
  element('title').textContent = name;
  document.title = `${name} – Portunus administration`;
  written('status', state(info));
  showCauses(info.diagnosis ?? [], webrtc);
  minute.show(webrtc?.series);
  showStreams(webrtc);
  showPairs(webrtc);
  showFacts(info);
  showCapture(info);
  written('remote-sdp', info.sdps?.remote ?? 'None has come.');
  written('local-sdp', info.sdps?.local ?? 'None was made.');
  written('plugin-state', JSON.stringify(info.plugin_specific ?? {}, null, 2));
  // It changes every second: whoever reads it looks at one moment.
  const all = element('all');
  if (!(all.parentElement as HTMLDetailsElement).open) written('all', JSON.stringify(info, null, 2));
}

/** The text that screen readers announce when it changes; it has no figures for that reason. */
function state({ webrtc, diagnosis = [] }: HandleInfo): string {
  if (!webrtc) return 'No PeerConnection.';
  const wrong = diagnosis.length === 0 ? '' : `; ${diagnosis.length} ${diagnosis.length === 1 ? 'cause' : 'causes'} of trouble`;
  return `ICE ${webrtc.ice.state}, DTLS ${webrtc.dtls['dtls-state'] ?? 'created'}${wrong}.`;
}

function showCauses(causes: Cause[], webrtc: WebRtc | undefined): void {
  const root = element('diagnosis');
  const items = causes.map(({ cause, text }) => {
    const item = make('li', { text: `${text} `, testid: `cause-${cause}` });
    item.append(make('code', { text: cause }));
    return item;
  });
  root.replaceChildren(...items);
  const well = element('well');
  well.hidden = causes.length > 0;
  well.textContent = webrtc ? 'Nothing that the server can see.' : 'There is no PeerConnection.';
}

function showFacts(info: HandleInfo): void {
  const { webrtc } = info;
  const link = webrtc?.bandwidth;
  const silent = info.session_last_activity === undefined ? undefined : (info.current_time - info.session_last_activity) / 1e6;
  const rows: [string, string | undefined][] = [
    ['Session', String(info.session_id)],
    ['Handle', String(info.handle_id)],
    ['There for', duration((info.current_time - info.created) / 1e6)],
    ['Transport', info.session_transport && short(info.session_transport)],
    ['Last request', silent === undefined ? undefined : `${duration(silent)} ago`],
    ['Path', webrtc?.ice['selected-pair']],
    ['SRTP', webrtc?.dtls['srtp-profile']],
    ['DTLS flights again', webrtc?.dtls.retransmissions?.toString()],
    ['Link to the client', link && `${bitrate(link.estimate)}, set by ${link.set_by}`],
    ['May be sent now', link && bitrate(link.budget)],
    ['Waits in a queue', link && time(link.queue)],
  ];
  showFigures(element('facts'), rows.filter((row): row is [string, string] => row[1] !== undefined));
}

function showCapture(info: HandleInfo): void {
  capturing = info['dump-to-pcap'] ?? false;
  captureButton.setAttribute('aria-pressed', String(capturing));
  captureButton.textContent = capturing ? 'Stop capturing' : 'Capture its packets';
  captureButton.disabled = !info.webrtc && !capturing;
  const file = element('capture-file');
  if (!capturing || !info['pcap-file']) return;
  file.hidden = false;
  const text = `Decrypted packets go to ${info['pcap-file']} on the server.`;
  if (file.textContent !== text) file.textContent = text;
}

function written(id: string, text: string): void {
  const root = element(id);
  if (root.textContent !== text) root.textContent = text;
}

/** A button that ends something, once the user has confirmed it. */
function end(id: string, verb: string, ids: string[], question: string): void {
  element(id).addEventListener('click', async () => {
    if (await confirmed(question)) void act(verb, ids);
  });
}

function confirmed(question: string): Promise<boolean> {
  const dialog = element<HTMLDialogElement>('confirm');
  element('confirm-text').textContent = question;
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((answered) => {
    dialog.addEventListener('close', () => answered(dialog.returnValue === 'yes'), { once: true });
  });
}

async function act(verb: string, ids: string[], members: Json = {}): Promise<void> {
  try {
    await ask(verb, members, ...ids);
    await refresh();
  } catch (error) {
    notice('error', explain(error));
  }
}
