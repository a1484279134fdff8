// Reads the colours, bold and underlines (SGR escapes) in a line of a terminal; all other escapes are left out.

/** Also an escape that the end of the line has cut off, as in howdah.logs.output_text. */
const ESCAPES =
  /\u001b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|\][^\u0007\u001b]*(?:\u0007|\u001b\\|\u001b?$)|[@-Z\\^_=>]|$)/g;
const SGR = /^\u001b\[([0-9;:]*)m$/;

type Rgb = readonly [red: number, green: number, blue: number];

export interface TextStyle {
  /** The colour of the text. */
  colour?: Rgb | undefined;
  background?: Rgb | undefined;
  bold?: boolean | undefined;
  underline?: boolean | undefined;
}

/** A part of a text with one style. */
export interface StyledRun {
  from: number;
  to: number;
  style: TextStyle;
}

/** Returns a text without escapes. */
export function stripEscapes(text: string): string {
  return text.includes("\u001b") ? text.replace(ESCAPES, "") : text;
}

/** Returns the styled parts of a text; their places are those in the text without escapes. */
export function styledRuns(text: string): StyledRun[] {
  const runs: StyledRun[] = [];
  let style: TextStyle = {};
  let [read, plain] = [0, 0];
  const addText = (end: number): void => {
    if (end > read && Object.keys(style).length) runs.push({ from: plain, to: plain + end - read, style });
    plain += end - read;
  };
  for (const escape of text.matchAll(ESCAPES)) {
    addText(escape.index);
    read = escape.index + escape[0].length;
    const parameters = SGR.exec(escape[0])?.[1];
    if (parameters !== undefined) style = withParameters(style, parameters);
  }
  addText(text.length);
  return runs;
}

/** Returns the style after an SGR escape with these parameters, as ECMA-48 and xterm define them. */
function withParameters(last: TextStyle, parameters: string): TextStyle {
  let style = { ...last };
  const codes = parameters.split(";");
  while (codes.length) {
    const [code = 0, ...parts] = (codes.shift() ?? "").split(":").map(Number);
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 22) delete style.bold;
    else if (code === 4 || code === 21) style.underline = parts[0] !== 0;
    else if (code === 24) delete style.underline;
    else if (code === 39) delete style.colour;
    else if (code === 49) delete style.background;
    else if (code === 38 || code === 48) {
      const colour = parts.length ? colonColour(parts) : takeColour(codes);
      if (colour) style[code === 38 ? "colour" : "background"] = colour;
    } else if (inRange(code, 30, 37)) style.colour = paletteColour(code - 30);
    else if (inRange(code, 90, 97)) style.colour = paletteColour(code - 82);
    else if (inRange(code, 40, 47)) style.background = paletteColour(code - 40);
    else if (inRange(code, 100, 107)) style.background = paletteColour(code - 92);
  }
  if (!style.underline) delete style.underline;
  return style;
}

function inRange(code: number, first: number, last: number): boolean {
  return code >= first && code <= last;
}

/** Takes the parameters of a colour, `5;N` or `2;R;G;B`, from the codes. */
function takeColour(codes: string[]): Rgb | undefined {
  const kind = Number(codes.shift());
  if (kind === 5) return paletteColour(Number(codes.shift()));
  return kind === 2 ? rgb(codes.splice(0, 3).map(Number)) : undefined;
}

/** Returns the colour of `5:N`, `2:R:G:B` or `2:SPACE:R:G:B`. */
function colonColour([kind = 0, ...values]: number[]): Rgb | undefined {
  if (kind === 5) return paletteColour(values[0] ?? 0);
  return kind === 2 ? rgb(values.length > 3 ? values.slice(1, 4) : values) : undefined;
}

function rgb(values: number[]): Rgb | undefined {
  const [red, green, blue] = values.map((value) => Math.min(255, Math.max(0, value || 0)));
  return red === undefined || green === undefined || blue === undefined ? undefined : [red, green, blue];
}

/** The first 16 colours of xterm. */
const BASIC: Rgb[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];

/** Returns a colour of xterm's palette: 16 colours, a cube of 216, and 24 greys. */
function paletteColour(index: number): Rgb | undefined {
  if (index >= 232 && index < 256) {
    const grey = 8 + 10 * (index - 232);
    return [grey, grey, grey];
  }
  if (index >= 16 && index < 232) {
    const level = (value: number): number => (value % 6 ? 55 + 40 * (value % 6) : 0);
    return [level(Math.trunc((index - 16) / 36)), level(Math.trunc((index - 16) / 6)), level(index - 16)];
  }
  return BASIC[index];
}

const MIN_CONTRAST = 4.5;
const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
/** The least favourable of the backgrounds on which each theme shows a line, and the theme's text. */
const LIGHT_BACKGROUND: Rgb = [238, 241, 244];
const DARK_BACKGROUND: Rgb = [35, 40, 46];
const LIGHT_TEXT: Rgb = [27, 31, 35];
const DARK_TEXT: Rgb = [230, 232, 234];

/** Returns the CSS of a style. The colour of the text is changed where it could not be read on its background. */
export function styleToCss(style: TextStyle, dark: boolean): Record<string, string> {
  const background = dark ? DARK_BACKGROUND : LIGHT_BACKGROUND;
  const colour = style.colour ?? (style.background && textOn(style.background));
  const css: Record<string, string> = {};
  if (colour) css.color = toCss(readableColour(colour, style.background ?? background));
  if (style.background) css.backgroundColor = toCss(style.background);
  if (style.bold) css.fontWeight = "700";
  if (style.underline) css.textDecoration = "underline";
  return css;
}

/** Returns the CSS of a colour `#rrggbb` as a line's text, changed where it could not be read. */
export function readableHex(hex: string, dark: boolean): string {
  const value = Number.parseInt(hex.slice(1), 16);
  const colour: Rgb = [value >> 16, (value >> 8) & 255, value & 255];
  return toCss(readableColour(colour, dark ? DARK_BACKGROUND : LIGHT_BACKGROUND));
}

/** Returns the text of the theme that is easier to read on a background. */
function textOn(background: Rgb): Rgb {
  return contrast(LIGHT_TEXT, background) > contrast(DARK_TEXT, background) ? LIGHT_TEXT : DARK_TEXT;
}

/** Mixes a colour with black or white until it has enough contrast to its background. */
function readableColour(colour: Rgb, background: Rgb): Rgb {
  const target = contrast(BLACK, background) > contrast(WHITE, background) ? BLACK : WHITE;
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = mix(colour, target, share);
    if (contrast(mixed, background) >= MIN_CONTRAST) return mixed;
  }
  return target;
}

function mix(colour: Rgb, other: Rgb, share: number): Rgb {
  const part = (at: 0 | 1 | 2): number => Math.round(colour[at] + (other[at] - colour[at]) * share);
  return [part(0), part(1), part(2)];
}

/** Returns the contrast of two colours as WCAG 2 defines it, 1 to 21. */
function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance([red, green, blue]: Rgb): number {
  const linear = (value: number): number =>
    value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function toCss(colour: Rgb): string {
  return `rgb(${colour.join(" ")})`;
}
