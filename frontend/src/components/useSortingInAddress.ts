// The sorting of a table, kept in the address as `sort`: the key of a column, with a minus for the other direction.

import { updateQuery, useRoute } from "../router";
import type { Sorting } from "./VirtualTable";

export function useSortingInAddress(): { sorting: Sorting; onSort: (sorting: Sorting) => void } {
  const sort = useRoute().query.get("sort") ?? "";
  return {
    sorting: { key: sort.replace(/^-/, ""), descending: sort.startsWith("-") },
    onSort: ({ key, descending }) => updateQuery({ sort: (descending ? "-" : "") + key }),
  };
}
