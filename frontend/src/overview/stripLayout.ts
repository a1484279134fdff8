// Lays out a strip of cells: one row while the cells are wide enough, then as few rows as fit a strip's height.

export interface StripLayout {
  columns: number;
  cellWidth: number;
  cellHeight: number;
  height: number;
}

const ROW_HEIGHT = 22;
const MAX_HEIGHT = 44;
const MIN_SIZE = 4;

/** Returns the largest cells of which `count` fill the `width` within a strip's height, in pixels. Very many cells in a
 * narrow window make a higher strip. */
export function layoutCells({ count, width }: { count: number; width: number }): StripLayout {
  if (count < 1 || width < 1) return { columns: 1, cellWidth: 1, cellHeight: ROW_HEIGHT, height: ROW_HEIGHT };
  for (let size = ROW_HEIGHT; size > MIN_SIZE; size -= 1) {
    const rows = Math.ceil(count / Math.max(1, Math.floor(width / Math.min(size, 8))));
    if (rows * size <= (rows === 1 ? ROW_HEIGHT : MAX_HEIGHT)) return arrange(count, width, rows, size);
  }
  const rows = Math.ceil(count / Math.max(1, Math.floor(width / MIN_SIZE)));
  return arrange(count, width, rows, MIN_SIZE);
}

function arrange(count: number, width: number, rows: number, cellHeight: number): StripLayout {
  const columns = Math.ceil(count / rows);
  return { columns, cellWidth: width / columns, cellHeight, height: rows * cellHeight };
}
