// Writes pictures of pages as small PNG files: with a palette of the 256 colours that are there most.
import { deflateSync } from 'node:zlib';

const COLORS = 256;

/** Encodes pixels of four bytes each (red, green, blue, and one that is left out). */
export function encode(pixels: Uint8Array, width: number, height: number): Buffer {
  const counts = new Map<number, number>();
  const colors = Array.from({ length: width * height }, (_, at) => (pixels[4 * at]! << 16) | (pixels[4 * at + 1]! << 8) | pixels[4 * at + 2]!);
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  const palette = [...counts].sort(([, one], [, other]) => other - one).slice(0, COLORS).map(([color]) => color);
  const places = new Map<number, number>();
  for (const color of counts.keys()) places.set(color, nearest(palette, color));
  const rows = Buffer.alloc(height * (width + 1));
  colors.forEach((color, at) => (rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = places.get(color)!));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const table = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', table), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

function nearest(palette: number[], color: number): number {
  let [best, least] = [0, Infinity];
  palette.forEach((known, at) => {
    const distance = [16, 8, 0].reduce((sum, shift) => sum + (((known >> shift) & 255) - ((color >> shift) & 255)) ** 2, 0);
    if (distance < least) [best, least] = [at, distance];
  });
  return best;
}

function chunk(name: string, data: Buffer): Buffer {
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([length, body, sum]);
}

/** As PNG wants it (ISO 3309). */
function crc(bytes: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
