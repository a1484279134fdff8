// The types of the API's answers, from its own document: generated/openapi.json -> generated/openapi.d.ts. The argument is
// the document's digest, which is kept in the first line.
import { writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const made = await openapi(new URL("generated/openapi.json", import.meta.url));
writeFileSync(new URL("generated/openapi.d.ts", import.meta.url), `// ${process.argv[2]}\n${astToString(made)}`);
