import { createHash } from "node:crypto";

export interface LibraryScript {
  name: string;
  body: string;
}

/**
 * A library of functions on the server: scripts with the preludes that they share. Its name bears a hash of its text, so different
 * versions of it stand side by side. It is loaded when a server turns out not to know it. Where that, or to call a function, is not
 * allowed or not possible, its scripts are sent as such for as long as this process lives.
 */
export class ScriptLibrary {
  readonly #text: string;
  readonly #name: string;
  readonly #functions = new Map<string, string>();
  #usable = true;
  #loading = false;

  constructor(name: string, preludes: readonly string[], scripts: readonly LibraryScript[]) {
    const hash = createHash("sha1")
      .update(JSON.stringify([preludes, scripts]))
      .digest("hex");
    this.#name = `fleet_${name}_${hash.slice(0, 16)}`;
    const functions = scripts.map((script) => {
      const own = `${this.#name}_${script.name.replaceAll("-", "_")}`;
      this.#functions.set(script.name, own);
      const flags = /^-- FLAGS (.*)$/m.exec(script.body)?.[1];
      const fields = [
        `function_name = "${own}"`,
        `callback = function(keys, args)\nKEYS, ARGV = keys, args\n${script.body}\nend`,
        `flags = { ${flags === undefined ? "" : `"${flags}"`} }`,
      ];
      return `redis.register_function({ ${fields.join(", ")} })`;
    });
    this.#text = [`#!lua name=${this.#name}`, "local KEYS, ARGV", ...preludes, ...functions].join("\n");
  }

  has(script: string): boolean {
    return this.#functions.has(script);
  }

  functionOf(script: string): string {
    return this.#functions.get(script) as string;
  }

  get isUsable(): boolean {
    return this.#usable;
  }

  /** Whether a refusal says that the function cannot be called there as yet, or ever; `send` reaches that server. */
  isMissing(reply: string, send: (args: readonly string[]) => Promise<unknown>): boolean {
    if (/^ERR Function not found/i.test(reply)) {
      void this.#load(send);
      return true;
    }
    if (!/^NOPERM .*fcall|^ERR unknown command .?fcall/i.test(reply)) return false;
    this.#usable = false;
    return true;
  }

  async #load(send: (args: readonly string[]) => Promise<unknown>): Promise<void> {
    if (this.#loading) return;
    this.#loading = true;
    try {
      await send(["FUNCTION", "LOAD", this.#text]);
    } catch (error) {
      const reply = error instanceof Error ? error.message : "";
      // Somebody else has loaded it meanwhile; a lost connection, or a server that is busy, says nothing about it either.
      if (/^NOPERM|^ERR (?!Library .*already exists)/.test(reply)) this.#usable = false;
    } finally {
      this.#loading = false;
    }
  }
}
