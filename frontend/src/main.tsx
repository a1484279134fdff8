import { createRoot } from "react-dom/client";
import { takeTokens } from "./tokens";
import "./style.css";
import { Page } from "./shell/Page";

takeTokens();
createRoot(document.getElementById("root") as HTMLElement).render(<Page />);
