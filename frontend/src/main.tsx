import { createRoot } from "react-dom/client";
import { openSession, takeTokens } from "./tokens";
import "./style.css";
import { Page } from "./shell/Page";

takeTokens();
void openSession().then(() => createRoot(document.getElementById("root") as HTMLElement).render(<Page />));
