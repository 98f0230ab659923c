// SPDX-License-Identifier: Apache-2.0
// An extension of JupyterLab as it is, without a build: a container of webpack's module federation has init(), which gets
// the modules that JupyterLab shares, and get(), which returns ours. It shows the memory of the current notebook's kernel
// against its limit in the status bar, and adds the cause to the dialog about a kernel that died.
(() => {
  const EVERY_MS = 3000;
  let shared = {};

  /** A module that JupyterLab shares. */
  async function load(name) {
    const versions = Object.values(shared[name] ?? {});
    if (versions.length === 0) throw new Error(`leadline: JupyterLab does not share ${name}`);
    return (await versions[0].get())();
  }

  function size(bytes) {
    return bytes < 2 ** 30 ? `${Math.round(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  }

  /** What the server knows of a kernel; nothing when it does not answer. */
  async function ask(ServerConnection, kernel) {
    const settings = ServerConnection.makeSettings();
    try {
      const answer = await ServerConnection.makeRequest(
        `${settings.baseUrl}leadline/memory/${kernel}`,
        {},
        settings,
      );
      return answer.ok ? await answer.json() : {};
    } catch {
      return {};
    }
  }

  function show(node, memory) {
    const { resident, used, capacity, container } = memory;
    node.textContent = resident ? `kernel ${size(resident)} of ${size(capacity)}` : "";
    node.title = resident
      ? `${size(used)} of ${size(capacity)} of the ${container ? "container" : "machine"} are in use (Leadline)`
      : "";
    node.style.fontWeight = used > 0.85 * capacity ? "bold" : "";
    node.style.color = used > 0.85 * capacity ? "var(--jp-error-color1)" : "";
  }

  /** The dialog about a restart has come up, or will in a moment. */
  function addCause(cause) {
    if (!cause) return;
    let tries = 0;
    const timer = setInterval(() => {
      const bodies = document.querySelectorAll(".jp-Dialog-content .jp-Dialog-body");
      const body = bodies[bodies.length - 1];
      if (body && !body.querySelector(".leadline-cause")) {
        const line = document.createElement("p");
        line.className = "leadline-cause";
        line.textContent = cause;
        body.append(line);
      }
      tries += 1;
      if (body || tries > 40) clearInterval(timer);
    }, 50);
  }

  async function makePlugin() {
    const [{ INotebookTracker }, { IStatusBar }, { ServerConnection }, { Widget }] = await Promise.all(
      ["@jupyterlab/notebook", "@jupyterlab/statusbar", "@jupyterlab/services", "@lumino/widgets"].map(load),
    );
    return {
      id: "leadline:memory",
      autoStart: true,
      requires: [INotebookTracker],
      optional: [IStatusBar],
      activate: (_app, tracker, statusBar) => {
        const item = new Widget();
        item.addClass("leadline-memory");
        item.node.style.lineHeight = "var(--jp-statusbar-height, 24px)";
        const kernel = () => tracker.currentWidget?.sessionContext.session?.kernel?.id;
        const refresh = async () => {
          const id = kernel();
          if (!document.hidden) show(item.node, id ? await ask(ServerConnection, id) : {});
        };
        if (statusBar) {
          statusBar.registerStatusItem("leadline:memory", { item, align: "right", rank: 100 });
          tracker.currentChanged.connect(refresh);
          setInterval(refresh, EVERY_MS);
        }
        tracker.widgetAdded.connect((_tracker, panel) => {
          panel.sessionContext.statusChanged.connect(async (context, status) => {
            const id = context.session?.kernel?.id;
            if (status === "autorestarting" && id) addCause((await ask(ServerConnection, id)).cause);
          });
        });
      },
    };
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB.leadline = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const plugin = await makePlugin();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
