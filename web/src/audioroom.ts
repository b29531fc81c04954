// The audio room page: choose or make a room, join it, leave it.
import { asksForGroup, AUDIO_BRIDGE, CODES, explain, type Listed } from './audio/api';
import { Room } from './audio/room';
import { Sending } from './audio/sending';
import { CaptureError } from './capture';
import { Exchange } from './exchange';
import { value } from './lobby';
import { element, notice, pageOptions } from './page';
import { RoomPage } from './roompage';

/** How fast the rooms that are made here notice that somebody talks: over so many packets, from this level on, in -dBov. */
const TALKING = { audio_active_packets: 15, audio_level_average: 50 };

const query = new URLSearchParams(window.location.search);
element('group-field').hidden = !query.has('group');
element<HTMLInputElement>('group').value = query.get('group') ?? '';

const sending = new Sending(pageOptions(), () => void room.sendOther());
const room: Room = new Room(sending, { left: (why) => page.left(why), again: () => void page.join() });
const page = new RoomPage<Listed>({
  file: 'audioroom.html',
  codes: CODES,
  attach: (session) => Exchange.attach(session, AUDIO_BRIDGE, { message: () => {}, connected: () => {} }),
  about: ({ sampling_rate, spatial_audio, num_listeners }) =>
    [`${sampling_rate / 1000} kHz`, spatial_audio && 'stereo', num_listeners && `${num_listeners} listening`].filter(Boolean).join(' · '),
  creation: () => {
    const groups = value('new-groups').split(',').map((group) => group.trim()).filter(Boolean);
    return {
      sampling_rate: Number(value('new-rate')),
      spatial_audio: element<HTMLInputElement>('new-spatial').checked,
      audiolevel_event: true,
      ...TALKING,
      ...(groups.length > 0 && { groups }),
    };
  },
  enter: (session, { room: id, name, pin, secret }) => {
    const group = element('group-field').hidden ? '' : value('group');
    return room.enter(session, { room: id, display: name, pin, group }, secret);
  },
  entered: (description) => {
    sending.moveFields(element('room-sound'));
    element('room-title').textContent = description;
    element('mute').focus();
  },
  leave: () => room.leave(),
  close: () => room.close(),
  suspend: () => room.suspend(),
  stands: (standing) => room.stands(standing),
  away: () => sending.moveFields(element('setup-sound')),
  explain,
  help: (error) => {
    if (error instanceof CaptureError) {
      notice('warning', error.message.replace(/camera (and|or) microphone/gi, 'the microphone'), [
        { label: 'Only listen', id: 'listen-only', run: () => { sending.listenOnly(); void page.join(); } },
      ]);
      return true;
    }
    if (!asksForGroup(error)) return false;
    notice('error', explain(error));
    element('group-field').hidden = false;
    element('group').focus();
    return true;
  },
});
