// Writes JSON values as readable YAML that can be used as a job file.

type Json = unknown;

const PLAIN_TEXT = /^[A-Za-z_/.][A-Za-z0-9_/.@+=-]*( [A-Za-z0-9_/.@+=-]+)*$/;
const RESERVED_WORD = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan|[0-9.].*)$/i;
/** Memory and durations as the server writes them. */
const QUANTITY = /^\d+(GiB|MiB|d|h|min|s)$/;
/** Characters that YAML does not allow or takes for a line end, and that JSON does not escape. */
const UNSAFE_CHARACTER = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\p{Cs}]/gu;
/** Texts that a YAML block scalar keeps unchanged. */
const BLOCK_TEXT = /^[^\s][^\r\u0000-\u0008\u000b-\u001f]*[^\s]\n?$/;

export function toYaml(value: Json, indent = ""): string {
  if (Array.isArray(value))
    return value.length ? value.map((entry) => `${indent}- ${formatItem(entry, indent)}`).join("\n") : `${indent}[]`;
  if (value && typeof value === "object") {
    const entries = Object.entries(value);
    return entries.length
      ? entries.map(([key, each]) => indent + formatScalar(key) + formatField(each, indent)).join("\n")
      : `${indent}{}`;
  }
  return indent + formatScalar(value);
}

function formatItem(value: Json, indent: string): string {
  return toYaml(value, `${indent}  `).trimStart();
}

function formatField(value: Json, indent: string): string {
  if (value && typeof value === "object" && Object.keys(value).length) {
    return `:\n${toYaml(value, Array.isArray(value) ? indent : `${indent}  `)}`;
  }
  if (typeof value === "string" && value.includes("\n") && BLOCK_TEXT.test(value) && !value.match(UNSAFE_CHARACTER))
    return `: ${formatBlock(value, `${indent}  `)}`;
  return `: ${value && typeof value === "object" ? (Array.isArray(value) ? "[]" : "{}") : formatScalar(value)}`;
}

function formatBlock(text: string, indent: string): string {
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${text.endsWith("\n") ? "" : "-"}\n${lines.map((line) => line && indent + line).join("\n")}`;
}

function formatScalar(value: Json): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  return QUANTITY.test(value) || (PLAIN_TEXT.test(value) && !RESERVED_WORD.test(value)) ? value : quote(value);
}

function quote(text: string): string {
  return JSON.stringify(text).replace(
    UNSAFE_CHARACTER,
    (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
