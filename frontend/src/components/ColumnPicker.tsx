// Chooses the columns of a table: those that fit the window's width, or those that the address names.

import { Select } from "antd";
import { type ReactNode, useMemo, useSyncExternalStore } from "react";
import { t } from "../language";
import { updateQuery, useRoute } from "../router";
import type { TableColumn } from "./VirtualTable";

/** Means in the address that no column is chosen. An empty value is left out, and then the window's width decides. */
const NO_COLUMNS = "-";

interface Props<T> {
  columns: TableColumn<T>[];
  visible: TableColumn<T>[];
}

/** Returns the columns to show. The first column holds each row's link and is always shown. */
export function useVisibleColumns<T>(columns: TableColumn<T>[]): TableColumn<T>[] {
  const width = useSyncExternalStore(subscribeToResize, () => window.innerWidth);
  const chosen = useRoute().query.get("columns");
  return useMemo(() => {
    const keys = chosen?.split(",");
    return columns.filter(
      ({ key, minWindowWidth = 0 }, index) => index === 0 || (keys ? keys.includes(key) : width >= minWindowWidth),
    );
  }, [columns, chosen, width]);
}

export function ColumnPicker<T>({ columns, visible }: Props<T>): ReactNode {
  return (
    <Select
      mode="multiple"
      aria-label={t("Columns")}
      value={visible.slice(1).map(({ key }) => key)}
      options={columns.slice(1).map(({ key, title }) => ({ value: key, label: title }))}
      showSearch={{ optionFilterProp: "label" }}
      onChange={(keys: string[]) => updateQuery({ columns: keys.join(",") || NO_COLUMNS })}
      maxTagCount={0}
      maxTagPlaceholder={t("Columns")}
      placeholder={t("Columns")}
      popupMatchSelectWidth={false}
      style={{ minWidth: 110 }}
    />
  );
}

function subscribeToResize(onResize: () => void): () => void {
  window.addEventListener("resize", onResize);
  return () => window.removeEventListener("resize", onResize);
}
