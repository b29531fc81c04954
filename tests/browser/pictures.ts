// Pictures of pages: they are in the documentation, and what a page looks like by now is compared with them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Page, TestInfo } from '@playwright/test';
import { expect } from './fixtures';
import { encode } from './small-png';

export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 360, height: 740 };

/** A picture has half the size of what it shows: the page on a desk, and beside it the same on a phone. */
const HALF = 2;
const GAP = 16;

/** Squares of this many pixels are compared by their mean colours, so that fonts and the edges of letters count little. */
const CELL = 10;
/** From this difference of a channel on a square is another, and from this share of such squares on the page is. */
const OTHER = 40;
const TOLERANCE = 0.06;

/** Lines break in the same places everywhere with the same font. `scripts/setup` installs it. */
const FONT = 'DejaVu Sans';
const SAMPLE = { text: 'The quick brown fox jumps over the lazy dog', width: 359.9 };

const update = process.env['PICTURES'] === 'update';
const fileOf = (name: string): string => new URL(`../../docs/pictures/${name}.png`, import.meta.url).pathname;

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A view of a page, and where it shows what is different each time. */
export interface View {
  image: string;
  moving: Box[];
}

/** Takes a view of what is seen of a page at its present size. */
export async function look(page: Page): Promise<View> {
  // Without the page's own sheet, which hides videos (fixtures.ts).
  const sheets = await page.evaluateHandle((font) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`* { font-family: "${font}" !important } code, pre, textarea { font-family: "${font} Mono" !important }`);
    const before = [...document.adoptedStyleSheets];
    document.adoptedStyleSheets = [sheet];
    return [...before, sheet];
  }, FONT);
  const boxes = await page.locator('video, .plot, time').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON() as Box));
  const image = await page.screenshot({ animations: 'disabled', caret: 'hide', timeout: 30_000 });
  await sheets.evaluate((all) => void (document.adoptedStyleSheets = all));
  return { image: `data:image/png;base64,${image.toString('base64')}`, moving: boxes };
}

/** Compares the views of a page with its picture, or makes that (`npm run pictures`). */
export async function compare(page: Page, name: string, [desk, phone]: [View, View], info: TestInfo): Promise<void> {
  const file = fileOf(name);
  const known = existsSync(file) ? `data:image/png;base64,${readFileSync(file).toString('base64')}` : null;
  const tool = await page.context().newPage();
  const { picture, share, width } = await tool.evaluate(
    async ({ desk, phone, known, sizes, HALF, GAP, CELL, OTHER, FONT, SAMPLE }) => {
      const load = async (source: string): Promise<HTMLImageElement> => {
        const image = new Image();
        image.src = source;
        await image.decode();
        return image;
      };
      const canvas = Object.assign(document.createElement('canvas'), { width: (sizes.desk.width + sizes.phone.width) / HALF + GAP, height: sizes.desk.height / HALF });
      const paint = canvas.getContext('2d', { willReadFrequently: true })!;
      paint.imageSmoothingQuality = 'high';
      paint.fillStyle = 'white';
      paint.fillRect(0, 0, canvas.width, canvas.height);
      const left = sizes.desk.width / HALF + GAP;
      paint.drawImage(await load(desk.image), 0, 0, sizes.desk.width / HALF, sizes.desk.height / HALF);
      paint.drawImage(await load(phone.image), left, 0, sizes.phone.width / HALF, sizes.phone.height / HALF);
      const { data } = paint.getImageData(0, 0, canvas.width, canvas.height);
      let bytes = '';
      for (const byte of data) bytes += String.fromCharCode(byte);
      const picture = btoa(bytes);
      paint.font = `16px "${FONT}"`;
      const { width } = paint.measureText(SAMPLE.text);
      if (!known) return { picture, share: 1, width };

      const means = (): number[][] => {
        // Read once: each reading of a canvas takes a millisecond or more.
        const { data, width } = paint.getImageData(0, 0, canvas.width, canvas.height);
        const cells: number[][] = [];
        for (let y = 0; y + CELL <= canvas.height; y += CELL) {
          for (let x = 0; x + CELL <= canvas.width; x += CELL) {
            const sum = [0, 0, 0];
            for (let row = y; row < y + CELL; row += 1) {
              for (let at = 4 * (row * width + x); at < 4 * (row * width + x + CELL); at += 1) if (at % 4 < 3) sum[at % 4]! += data[at]!;
            }
            cells.push([x, y, ...sum.map((one) => one / CELL ** 2)]);
          }
        }
        return cells;
      };
      const moving = [...desk.moving.map((box) => ({ ...box, from: 0 })), ...phone.moving.map((box) => ({ ...box, from: left }))];
      const isStill = (x: number, y: number): boolean =>
        !moving.some((box) => {
          const [from, top] = [box.from + box.x / HALF, box.y / HALF];
          return x + CELL > from && x < from + box.width / HALF && y + CELL > top && y < top + box.height / HALF;
        });
      const now = means();
      paint.clearRect(0, 0, canvas.width, canvas.height);
      paint.drawImage(await load(known), 0, 0);
      const before = means();
      let [all, other] = [0, 0];
      now.forEach(([x, y, ...color], index) => {
        if (!isStill(x!, y!)) return;
        all += 1;
        if (color.some((channel, at) => Math.abs(channel - before[index]![at + 2]!) > OTHER)) other += 1;
      });
      return { picture, share: other / Math.max(1, all), width };
    },
    { desk, phone, known, sizes: { desk: DESK, phone: PHONE }, HALF, GAP, CELL, OTHER, FONT, SAMPLE },
  );
  await tool.close();
  if (Math.abs(width / SAMPLE.width - 1) > 0.02) {
    info.annotations.push({ type: 'pictures', description: `Not compared: ${FONT} is not installed (a sample is ${width} px wide).` });
    return;
  }
  const png = (): Buffer => encode(Buffer.from(picture, 'base64'), (DESK.width + PHONE.width) / HALF + GAP, DESK.height / HALF);
  if (update && (share > TOLERANCE / 6 || !known)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, png());
    return;
  }
  if (share > TOLERANCE) await info.attach(`${name}.png`, { body: png(), contentType: 'image/png' });
  expect(share, `how much of ${name} is other than in docs/pictures (npm run pictures makes these anew)`).toBeLessThanOrEqual(TOLERANCE);
}
