// Where the pictures of a room are: as large as the window allows.

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const RATIO = 16 / 9;
const GAP = 8;
/** The smallest picture beside a large one, in CSS pixels across. */
const SMALLEST = 112;

/** Returns a box for each of `count` pictures of the same size: in a high window squares, which are larger, of pictures that are cut. */
export function evenly(count: number, width: number, height: number): Box[] {
  const ratio = height > width && count > 2 ? 1 : RATIO;
  let best = { columns: 1, width: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const across = (width - GAP * (columns - 1)) / columns;
    const down = (height - GAP * (rows - 1)) / rows;
    const fits = Math.min(across, down * ratio);
    if (fits > best.width) best = { columns, width: fits };
  }
  const { columns, width: across } = best;
  const down = across / ratio;
  const rows = Math.ceil(count / columns);
  const top = (height - rows * down - (rows - 1) * GAP) / 2;
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / columns);
    const inRow = row === rows - 1 ? count - row * columns : columns;
    const left = (width - inRow * across - (inRow - 1) * GAP) / 2;
    return { left: left + (index % columns) * (across + GAP), top: top + row * (down + GAP), width: across, height: down };
  });
}

/**
 * Returns a box for the picture at `large`, and for the others in a strip beside it, at the right of a wide window and below in
 * a high one. Those for which the strip has no room have none.
 */
export function besideLarge(count: number, large: number, width: number, height: number): (Box | null)[] {
  if (count === 1) return evenly(1, width, height);
  const wide = width > height;
  const thick = wide ? Math.max(SMALLEST, width / 6) : Math.max(SMALLEST, Math.min(width / 3, height / 4));
  const thin = thick / RATIO;
  const [step, space] = wide ? [thin + GAP, height] : [thick + GAP, width];
  const room = Math.max(1, Math.floor((space + GAP) / step));
  const shown = Math.min(count - 1, room);
  const begin = (space - shown * step + GAP) / 2;
  let place = 0;
  return Array.from({ length: count }, (_, index) => {
    if (index === large) {
      return wide ? { left: 0, top: 0, width: width - thick - GAP, height } : { left: 0, top: 0, width, height: height - thin - GAP };
    }
    if (place >= shown) return null;
    const along = begin + place * step;
    place += 1;
    return wide ? { left: width - thick, top: along, width: thick, height: thin } : { left: along, top: height - thin, width: thick, height: thin };
  });
}
