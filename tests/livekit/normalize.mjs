// Ids and times differ from run to run: ids become numbers in their order, times become words.

const ID = /\b(RM|PA|TR|DTR|ND|EG|IN|AD|AJ|AW|RPC)_[A-Za-z0-9]{6,}\b/g;
const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
const JWT = /\b[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g;

/** Members whose values are times. */
const TIMES = /^(creation_?time(_?ms)?|joined_?at(_?ms)?|(started|ended|updated|created|deleted)_?at|unix_?micro|ticks|timestamp|last_?ping_?timestamp)$/i;

/** Members whose values are random, or name the server. */
const SECRETS = /^(turn_?password|sif_?trailer|node_?id|credential|username|urls|ice_?servers|ssrc)$/i;

/** Of a description only the sections are left: kind, mid, direction and role. */
const sections = (sdp) => sdp.split('\r\n').filter((line) => /^(m=|a=(mid|setup|sctp-port|max-message-size|sendrecv|sendonly|recvonly|inactive)\b)/.test(line))
  .map((line) => (line.startsWith('m=') ? line.split(' ')[0] : line))
  // The order within a section says nothing; there is one section in offers without tracks.
  .sort();

/** Candidates depend on the machine: which targets have some, and whether the last one is marked, is left. */
function candidates(frames) {
  const targets = [...new Set(frames.map((it) => it.target ?? 'PUBLISHER'))].sort();
  return targets.map((target) => ({ target, final: frames.some((it) => (it.target ?? 'PUBLISHER') === target && it.final === true) }));
}

/** The reference puts this before texts of some errors, by an oversight. */
const PREFIX = /^twirp error unknown: /;

/** Returns a transcript in which only differences that matter are left. */
export function normalize(value) {
  const ids = new Map();
  const text = (string) => string
    .replace(PREFIX, '')
    .replace(JWT, 'JWT')
    .replace(UUID, 'UUID')
    .replace(ID, (id, prefix) => {
      if (!ids.has(id)) ids.set(id, `${prefix}_${[...ids.values()].filter((it) => it.startsWith(`${prefix}_`)).length + 1}`);
      return ids.get(id);
    });
  const walk = (value, key) => {
    if (value === null || value === undefined) return value;
    if (TIMES.test(key) && !/^0?$/.test(String(value))) return 'TIME';
    if (SECRETS.test(key) && value.length !== 0) return 'RANDOM';
    if (key === 'sdp') return sections(value);
    if (key === 'trickle' && Array.isArray(value)) return candidates(value);
    if (typeof value === 'string') return text(value);
    // The order of codecs says nothing.
    if (/^enabled_?(publish_?)?codecs$/i.test(key) && Array.isArray(value)) return value.map((it) => it.mime).sort().join(' ');
    // Lists of participants have no order.
    const byIdentity = (a, b) => (a.identity < b.identity ? -1 : 1);
    if (/participants$/i.test(key) && Array.isArray(value)) value = [...value].sort(byIdentity);
    // Neither have their tracks.
    if (key === 'tracks' && Array.isArray(value)) value = [...value].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (Array.isArray(value)) return value.map((it) => walk(it, ''));
    if (typeof value === 'object') {
      // Numbers of descriptions begin anywhere.
      if ('sdp' in value && 'id' in value) value = { ...value, id: 'NUMBER' };
      return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, walk(it, name)]));
    }
    return value;
  };
  return walk(value, '');
}
