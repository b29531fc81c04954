// A SIP server that answers each call at once, with sound that is not encrypted.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

const SDP = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', 'm=audio 9 RTP/AVP 0', ''].join('\r\n');

/** Listens on a port of its own. */
export async function answerCalls(): Promise<{ socket: Socket; domain: string }> {
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    const text = String(message);
    const method = text.slice(0, text.indexOf(' '));
    if (method === 'ACK') return;
    const fields = text.match(/^(Via|From|To|Call-ID|CSeq|v|f|t|i):.*$/gim) ?? [];
    const head = ['SIP/2.0 200 OK', ...fields.map((field) => (/^(To|t):/i.test(field) && !/tag=/.test(field) ? `${field};tag=plain` : field))];
    const isCall = method === 'INVITE';
    const more = [`Contact: <sip:plain@127.0.0.1:${socket.address().port}>`, ...(isCall ? ['Content-Type: application/sdp'] : []), `Content-Length: ${isCall ? SDP.length : 0}`];
    socket.send([...head, ...more, '', isCall ? SDP : ''].join('\r\n'), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { socket, domain: `127.0.0.1:${socket.address().port}` };
}
