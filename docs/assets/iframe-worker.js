/* A page from the disk may not start a worker. There, and only there, `Worker` becomes a script in a hidden frame of the same page:
   what the page posts arrives in the frame as a message, what the frame posts arrives at the page. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const base = new URL(url, location.href);
      const load = source => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(source, base);
        script.onload = done;
        script.onerror = failed;
        inside.document.body.append(script);
      });
      inside.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.frame = frame;
      this.ready = load(base);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
