// The types of the server's answers, from the API's own document (the OpenAPI document). Times are Unix seconds; the name of
// a size says its unit. `python build.py check` generates the imported file.

import type { components, paths } from "../generated/openapi";

type Schemas = components["schemas"];
type Prefix = "/api/v1/";

type GetOperations = {
  [Path in keyof paths as Path extends `${Prefix}${infer Rest}` ? Rest : never]: paths[Path] extends { get: infer Get }
    ? Get
    : never;
};
type PutOperations = {
  [
    Path in keyof paths as Path extends `${Prefix}jobs/{job}/actions/${infer Name}` ? Name : never
  ]: paths[Path] extends {
    put: infer Put;
  }
    ? Put
    : never;
};
type ResponseBody<Operation, Kind> = Operation extends { responses: { 200: { content: infer All } } }
  ? Kind extends keyof All
    ? All[Kind]
    : never
  : never;

/** The path of everything that answers GET, as in the document: `jobs/{job}/tasks`. */
export type ApiPath = keyof GetOperations;
/** The JSON that a path answers with, when something has changed. */
export type ApiResponse<C extends ApiPath> = Exclude<
  ResponseBody<GetOperations[C], "application/json">,
  Schemas["Unchanged"]
>;
/** The parameters in a path: `{job}`. */
export type PathParams<C extends string> = C extends `${string}{${infer Name}}${infer Rest}`
  ? Record<Name, string> & PathParams<Rest>
  : unknown;
/** The parameters in a path's query. A list stands for a parameter that is repeated. */
export type QueryParams<C extends ApiPath> = GetOperations[C] extends { parameters: { query?: infer Query } }
  ? { [Name in keyof NonNullable<Query>]?: string | number | string[] | undefined }
  : never;

/** The name of everything that changes a job. */
export type ActionName = keyof PutOperations;
export type ActionResponse<A extends ActionName> = ResponseBody<PutOperations[A], "application/json">;
export type ActionBody<A extends ActionName> = PutOperations[A] extends {
  requestBody: { content: { "application/json": infer Body } };
}
  ? Omit<Body, "token">
  : never;

export type TaskState = Schemas["Task"]["state"];
export type ServerInfo = Schemas["Server"];
export type JobRow = Schemas["JobRow"];
export type Snapshot = Schemas["SnapshotRow"];
export type Role = Schemas["RoleRow"];
export type Job = ApiResponse<"jobs/{job}">;
export type Task = Schemas["Task"];
export type Phase = Schemas["Span"]["phase"];
export type Timeline = ApiResponse<"jobs/{job}/timeline">;
export type SeriesResponse = ApiResponse<"jobs/{job}/series">;
export type SeriesPoint = Schemas["TaskSeries"]["points"][number];
export type LogChunk = Schemas["Log"];
export type LogMatch = Schemas["SearchMatch"];
export type EventRun = Schemas["RunRow"];
export type EventRunsResponse = Schemas["Runs"];
export type ScalarSeries = Schemas["Line"];
export type ScalarPoint = ScalarSeries["points"][number];
export type Histograms = Schemas["Histograms"];
export type HyperparameterRun = Schemas["Session"];
export type Checkpoint = Schemas["CheckpointRow"];
export type Tensor = Schemas["TensorRow"];
export type SpecDifference = Schemas["Difference"];
export type UserUsage = Schemas["UserRow"];
