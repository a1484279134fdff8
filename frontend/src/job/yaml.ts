// JSON's values as YAML people can read and put into a job file again.

type Json = unknown;

const PLAIN = /^[A-Za-z_/.][A-Za-z0-9_/.@+=-]*( [A-Za-z0-9_/.@+=-]+)*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan|[0-9.].*)$/i;

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
  if (typeof value === "string" && value.includes("\n")) return `: ${block(value, `${indent}  `)}`;
  return `: ${value && typeof value === "object" ? (Array.isArray(value) ? "[]" : "{}") : scalar(value)}`;
}

function block(text: string, indent: string): string {
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${text.endsWith("\n") ? "" : "-"}\n${lines.map((line) => indent + line).join("\n")}`;
}

function scalar(value: Json): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  return PLAIN.test(value) && !WORDS.test(value) ? value : JSON.stringify(value);
}
