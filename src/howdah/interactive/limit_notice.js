// A JupyterLab extension without a build: says how much time the job has left, and how to get more.
// It is what JupyterLab's module federation expects: a container with `init` and `get`.
var _JUPYTERLAB;
(_JUPYTERLAB = typeof _JUPYTERLAB === "undefined" ? {} : _JUPYTERLAB)["howdah-limit"] = {
  init: () => {},
  get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
};

const plugin = {
  id: "howdah-limit:plugin",
  autoStart: true,
  activate: (app) => {
    let said = 0;
    const look = async () => {
      try {
        const address = `${app.serviceManager.serverSettings.baseUrl}static/howdah-limit.json?now=${Date.now()}`;
        const limit = await (await fetch(address)).json();
        const left = limit.until - Date.now() / 1000;
        if (left > limit.warn_s || said === limit.until) return;
        const minutes = Math.max(0, Math.round(left / 60));
        const message = `This job ends in ${minutes} minutes (还剩 ${minutes} 分钟): ${limit.command}`;
        await app.commands.execute("apputils:notify", { message, type: "warning", options: { autoClose: false } });
        said = limit.until;
      } catch (error) {
        console.warn("howdah-limit:", error);
      }
    };
    app.restored.then(() => {
      look();
      setInterval(look, 15000);
    });
  },
};
