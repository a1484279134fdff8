// What the server answers, by the API's own document (docs/openapi.json): times are epoch seconds, sizes are in the unit
// of their name. `python build.py check` makes what is imported here.

import type { components, paths } from "../generated/openapi";

type Schemas = components["schemas"];
type Prefix = "/api/v1/";

type Gets = {
  [Path in keyof paths as Path extends `${Prefix}${infer Call}` ? Call : never]: paths[Path] extends { get: infer Get }
    ? Get
    : never;
};
type Puts = {
  [Path in keyof paths as Path extends `${Prefix}jobs/{job}/actions/${infer Name}` ? Name : never]: paths[Path] extends {
    put: infer Put;
  }
    ? Put
    : never;
};
type Content<Operation, Kind> = Operation extends { responses: { 200: { content: infer All } } }
  ? Kind extends keyof All
    ? All[Kind]
    : never
  : never;

/** Everything that is asked by GET, as in the document: `jobs/{job}/tasks`. */
export type Call = keyof Gets;
/** Its JSON, when something has changed. */
export type Answer<C extends Call> = Exclude<Content<Gets[C], "application/json">, Schemas["Unchanged"]>;
/** What stands in its path. */
export type Places<C extends string> = C extends `${string}{${infer Name}}${infer Rest}`
  ? Record<Name, string> & Places<Rest>
  : unknown;
/** Its parameters. A list stands for one that is repeated. */
export type QueryOf<C extends Call> = Gets[C] extends { parameters: { query?: infer Query } }
  ? { [Name in keyof NonNullable<Query>]?: string | number | string[] | undefined }
  : never;

/** Everything that changes a job. */
export type ActionName = keyof Puts;
export type ActionAnswer<A extends ActionName> = Content<Puts[A], "application/json">;
export type ActionWords<A extends ActionName> = Puts[A] extends {
  requestBody: { content: { "application/json": infer Body } };
}
  ? Omit<Body, "token">
  : never;

export type State = Schemas["Task"]["state"];
export type Server = Schemas["Server"];
export type JobRow = Schemas["JobRow"];
export type Save = Schemas["Save"];
export type Role = Schemas["RoleRow"];
export type Captured = Schemas["Captured"];
export type Job = Answer<"jobs/{job}">;
export type Task = Schemas["Task"];
export type Phase = Schemas["Span"]["phase"];
export type Timeline = Answer<"jobs/{job}/timeline">;
export type Usage = Answer<"jobs/{job}/series">;
export type UsagePoint = Schemas["TaskSeries"]["points"][number];
export type LogPart = Schemas["Log"];
export type Hit = Schemas["Hit"];
export type Run = Schemas["RunRow"];
export type Runs = Schemas["Runs"];
export type Line = Schemas["Line"];
export type ScalarPoint = Line["points"][number];
export type Histograms = Schemas["Histograms"];
export type Session = Schemas["Session"];
export type Checkpoint = Schemas["CheckpointRow"];
export type Tensor = Schemas["TensorRow"];
export type Difference = Schemas["Difference"];
export type UserRow = Schemas["UserRow"];
