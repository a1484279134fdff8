// Relative addresses, because YARN's proxy serves the page below a prefix; one folder, hashed names, no inline script.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/howdah/api/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1200,
    reportCompressedSize: false,
    target: "es2022",
  },
});
