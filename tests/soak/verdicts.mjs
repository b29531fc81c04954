// What has to hold after a soak. Each verdict has a name, whether it holds, and the figures that say so. What comes of a machine whose
// cores are others' too is no fault of the server: on a busy one (`isBusy`) being late is explained.

/** Counters whose names say that something was lost, refused or failed. */
const TROUBLE = /drop|refused|malformed|fail|lost|undelivered|unreturned|skipped|stray|slow_|silent_|timed_out|bad_requests|limited|full_|unknown|ignored|merged|too_/;

/** Those of them that grow although all is well, and why. */
const EXPECTED = [
  { of: /refused_datagrams_total\{kind="(unknown_peer|closed)"\}/, why: 'media that was on its way when its connection ended' },
  { of: /refused_datagrams_total\{kind="no_keys"\}/, why: 'media that overtook the end of the handshake' },
  { of: /refused_datagrams_total\{kind="refused_dtls"\}/, why: 'handshakes that are repeated since an answer was lost' },
  { of: /portunus_sip_stray_answers_total/, why: 'requests that were repeated since the answer was late', ifBusy: true },
  { of: /portunus_dropped_events_total/, why: 'events for a client that has just hung up' },
  { of: /audio_(skipped|unreturned)_frames_total/, why: 'a thread that mixes waited for a core', ifBusy: true },
  { of: /audio_(dropped|undelivered)_packets_total|ring_dropped_total/, why: 'a thread waited for a core', ifBusy: true },
];

/** Lines of the log, of warnings and errors, that have to be there, and why. */
const EXPLAINED = [
  { line: /an audio thread is too late/, why: 'it waited for a core', ifBusy: true },
  { line: /recordings on a disk had to wait for it/, why: 'the disk is shared', ifBusy: true },
];

/** Whether an exception counts on this machine. */
const counts = ({ ifBusy = false }, isBusy) => isBusy || !ifBusy;

/** What is zero when everybody has left. */
const GONE = [
  'portunus_sessions',
  'portunus_handles',
  'portunus_peer_connections',
  'portunus_media_peers',
  'portunus_recordings',
  'portunus_recording_waiting_bytes',
  'portunus_audio_rooms',
  'portunus_audio_participants',
  'portunus_sip_accounts',
  'portunus_sip_calls',
  'portunus_sip_connections',
];

const MIB = 1024 * 1024;
const mib = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`;

function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/**
 * When memory has its level, and how much it may grow from there to the end. It has it after 10 minutes. A short run cannot wait for
 * that: it looks earlier, when allocators and caches still grow, and allows for it.
 */
export function memoryBound(seconds) {
  const isLong = seconds >= 1_800;
  return { level: isLong ? 600 : seconds * 0.4, window: isLong ? 180 : Math.min(60, seconds * 0.2), growth: isLong ? 0.05 : 0.08 };
}

/** Memory stays at its level. */
export function memory(samples, seconds) {
  const { level, window, growth } = memoryBound(seconds);
  const within = (from) => median(samples.filter(({ at }) => at >= from && at < from + window).map(({ rss }) => rss));
  const [before, after] = [within(level), within(seconds - window)];
  const change = after / before - 1;
  return {
    name: 'memory stays at its level',
    holds: change <= growth,
    figures: `${mib(before)} after ${Math.round(level)} s, ${mib(after)} at the end: ${(change * 100).toFixed(1)} %, ${growth * 100} % allowed`,
  };
}

/** What the server holds when all have left is what it held before they came. */
export function back(before, after) {
  const left = GONE.filter((name) => (after.metrics[name] ?? 0) > 0).map((name) => `${name} ${after.metrics[name]}`);
  // Threads that mix are made when so many rooms need them, one for each core at most, and stay.
  const passing = ({ names }) => names.filter((name) => !/^audio-\d+$/.test(name));
  const known = passing(before);
  const further = passing(after).filter((name) => !known.includes(name) || known.splice(known.indexOf(name), 1).length === 0);
  return [
    { name: 'descriptors are back', holds: after.descriptors <= before.descriptors, figures: `${before.descriptors} before, ${after.descriptors} after` },
    {
      name: 'threads are back',
      holds: further.length === 0,
      figures: `${before.threads} before, ${after.threads} after${further.length ? `, further ones: ${further.join(', ')}` : ''}`,
    },
    { name: 'nothing of clients is left', holds: left.length === 0, figures: left.join(', ') || 'no session, handle, peer, recording, room or call' },
  ];
}

/** Whether `back` holds. */
export const isBack = (before, after) => back(before, after).every(({ holds }) => holds);

/** No counter of trouble has grown that should not. */
export function counters(before, after, isBusy) {
  const grown = Object.entries(after.metrics)
    .filter(([name, value]) => TROUBLE.test(name) && /_total/.test(name) && value > (before.metrics[name] ?? 0))
    .map(([name, value]) => ({ name, by: value - (before.metrics[name] ?? 0) }));
  const strange = grown.filter(({ name }) => !EXPECTED.some((one) => counts(one, isBusy) && one.of.test(name)));
  const text = (list) => list.map(({ name, by }) => `${name} +${by}`).join(', ');
  return {
    name: 'no counter of losses and refusals grew that should not',
    holds: strange.length === 0,
    figures: text(strange) || `expected ones: ${text(grown) || 'none'}`,
  };
}

/** Each warning and error of the log is explained. */
export function log(text, isBusy) {
  const lines = text.split('\n').filter((line) => /^\S+ +(WARN|ERROR) /.test(line) || /panicked/.test(line));
  const strange = lines.filter((line) => !EXPLAINED.some((one) => counts(one, isBusy) && one.line.test(line)));
  return {
    name: 'no unexplained warning or error in the log',
    holds: strange.length === 0,
    figures: strange.length ? `${strange.length}:\n${strange.slice(0, 20).map((line) => `      ${line}`).join('\n')}` : `${lines.length} explained`,
  };
}

/** Media flowed to each kind of receiver, in each round. */
export function load({ name, rounds, packets, faults }) {
  const first = faults.slice(0, 5).map((fault) => `      ${fault}`).join('\n');
  return {
    name,
    holds: rounds > 0 && faults.length === 0,
    figures: `${rounds} rounds${packets ? `, ${packets} packets or messages` : ''}${faults.length ? `, ${faults.length} faults:\n${first}` : ''}`,
  };
}
