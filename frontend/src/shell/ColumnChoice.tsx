// Which columns of a table are shown: as many as fit the window well, or those that the address names.

import { Select } from "antd";
import { type ReactNode, useMemo, useSyncExternalStore } from "react";
import { say } from "../language";
import { amend, useRoute } from "../route";
import type { Column } from "./Grid";

/** Stands in the address for none: an empty word is left out of it, and then the window decides. */
const NONE = "-";

interface Props<T> {
  possible: Column<T>[];
  shown: Column<T>[];
}

/** Of `possible` those that are shown; the first one, which is each row's link, always is. */
export function useColumns<T>(possible: Column<T>[]): Column<T>[] {
  const width = useSyncExternalStore(watch, () => window.innerWidth);
  const chosen = useRoute().query.get("columns");
  return useMemo(() => {
    const keys = chosen?.split(",");
    return possible.filter(({ key, from = 0 }, index) => index === 0 || (keys ? keys.includes(key) : width >= from));
  }, [possible, chosen, width]);
}

export function ColumnChoice<T>({ possible, shown }: Props<T>): ReactNode {
  return (
    <Select
      mode="multiple"
      aria-label={say("Columns")}
      value={shown.slice(1).map(({ key }) => key)}
      options={possible.slice(1).map(({ key, title }) => ({ value: key, label: title }))}
      showSearch={{ optionFilterProp: "label" }}
      onChange={(keys: string[]) => amend({ columns: keys.join(",") || NONE })}
      maxTagCount={0}
      maxTagPlaceholder={say("Columns")}
      placeholder={say("Columns")}
      popupMatchSelectWidth={false}
      style={{ minWidth: 110 }}
    />
  );
}

function watch(tell: () => void): () => void {
  window.addEventListener("resize", tell);
  return () => window.removeEventListener("resize", tell);
}
