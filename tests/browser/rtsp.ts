// A camera's stand-in.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

export interface RtspServer {
  child: ChildProcess;
  port: number;
}

/** Starts an RTSP server of GStreamer's; it ends with its standard input. */
export async function startRtspServer(port = 0): Promise<RtspServer> {
  const program = new URL('../../crates/rtsp/tests/gst_server.py', import.meta.url).pathname;
  const child = spawn('/usr/bin/python3', [program, String(port), 'digest']);
  let errors = '';
  child.stderr.on('data', (text) => (errors = (errors + text).slice(-2000)));
  const [line] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  const bound = Number(String(line).trim());
  if (!bound) throw new Error(`gst-rtsp-server did not start: ${errors}`);
  return { child, port: bound };
}
