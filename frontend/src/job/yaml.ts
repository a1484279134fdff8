// JSON's values as YAML people can read and put into a job file again.

type Json = unknown;

const PLAIN = /^[A-Za-z_/.][A-Za-z0-9_/.@+=-]*( [A-Za-z0-9_/.@+=-]+)*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan|[0-9.].*)$/i;
/** As the server writes memory and durations. */
const QUANTITY = /^\d+(GiB|MiB|d|h|min|s)$/;
/** What YAML takes in no text, or for the end of a line; JSON does not escape it. */
const ODD = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\p{Cs}]/gu;
/** Texts that a block says exactly as they are. */
const BLOCK = /^[^\s][^\r\u0000-\u0008\u000b-\u001f]*[^\s]\n?$/;

export function yaml(value: Json, indent = ""): string {
  if (Array.isArray(value))
    return value.length ? value.map((each) => `${indent}- ${item(each, indent)}`).join("\n") : `${indent}[]`;
  if (value && typeof value === "object") {
    const entries = Object.entries(value);
    return entries.length
      ? entries.map(([key, each]) => indent + scalar(key) + field(each, indent)).join("\n")
      : `${indent}{}`;
  }
  return indent + scalar(value);
}

function item(value: Json, indent: string): string {
  return yaml(value, `${indent}  `).trimStart();
}

function field(value: Json, indent: string): string {
  if (value && typeof value === "object" && Object.keys(value).length) {
    return `:\n${yaml(value, Array.isArray(value) ? indent : `${indent}  `)}`;
  }
  if (typeof value === "string" && value.includes("\n") && BLOCK.test(value) && !value.match(ODD))
    return `: ${block(value, `${indent}  `)}`;
  return `: ${value && typeof value === "object" ? (Array.isArray(value) ? "[]" : "{}") : scalar(value)}`;
}

function block(text: string, indent: string): string {
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${text.endsWith("\n") ? "" : "-"}\n${lines.map((line) => line && indent + line).join("\n")}`;
}

function scalar(value: Json): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  return QUANTITY.test(value) || (PLAIN.test(value) && !WORDS.test(value)) ? value : quoted(value);
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(ODD, (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
